// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {

// Makes a tar archive of the files of an export while they arrive: uncompressed, in the pax
// interchange format (POSIX.1-2017, "pax"), so that paths and sizes have no limit.
//
// An archive has the size of a file before its bytes, and several files of an export grow at once.
// Each is therefore kept in a temporary file without a name until it ends, and then passed on. Used
// by one thread at a time.
class TarSpool {
 public:
  struct Options {
    std::string directory;    // of the files within the archive: a plain name
    uint64_t modified_s = 0;  // modification time of all files, seconds since 1970
    // Bytes of temporary files at once; a test sets fewer.
    uint64_t bytes_max = limits::kWebSpoolBytesMax;
  };
  explicit TarSpool(Options options) : options_(std::move(options)) {}

  // Begin, fill and end a file. Files are numbered from 0 in the order of Begin, and several may be
  // open. Fail with DATA_LOSS for a number that is not open and a name that is no path below the
  // directory, with RESOURCE_EXHAUSTED beyond limits::kWebSpoolFilesMax open files or the limit of
  // bytes, and with FAILED_PRECONDITION, with the system's reason, if the temporary directory
  // refuses.
  absl::Status Begin(std::string_view name);
  absl::Status Write(uint32_t number, std::string_view data);
  absl::Status End(uint32_t number);
  // Ends the archive. Fails with DATA_LOSS if a file has not ended.
  absl::Status Finish();

  // Replaces `piece` by the next bytes of the archive; it is empty if none are ready. Fails as
  // Write does.
  absl::Status Read(std::string& piece);

 private:
  struct File {
    std::string name;
    UniqueFd fd;
    uint64_t bytes = 0;
    bool is_open = true;
  };
  // Returns the file if it is open, or nullptr.
  File* Find(uint32_t number);

  const Options options_;
  std::vector<File> files_;     // by number; without a descriptor once they are in the archive
  std::deque<uint32_t> ready_;  // files that have ended, in this order
  uint64_t position_ = 0;       // within the first of them
  bool has_header_ = false;     // of the first of them is in the archive
  std::string rest_;            // the end of the archive, once it is next
  size_t open_ = 0;
  uint64_t bytes_ = 0;  // of temporary files
  bool is_finished_ = false;
};

}  // namespace neurontrace
