// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// What an operation of a volume takes at most, where the volume can end it, as a bucket can: who
// may write for some time only looks before each.
inline constexpr uint64_t kVolumeOperationNs = 60'000'000'000;

// Asked before each operation: an error ends what was begun.
using MayGoOn = std::function<absl::Status()>;

// Where exports are delivered: a directory of a shared file system or a prefix of a bucket.
// Abstract because both are shipped, and so that tests have one that fills up, fails and crashes
// between steps. Names are relative paths as IsVolumeName allows; what they lead to stays below the
// volume. One thread at a time, as the files it opens; it outlives them.
//
// Errors name the operation and the file. NOT_FOUND: it is not there; ALREADY_EXISTS;
// RESOURCE_EXHAUSTED: the volume or a quota is full; FAILED_PRECONDITION: access is denied, or
// something is in the way; UNAVAILABLE: anything else, worth another try.
class Volume {
 public:
  struct Entry {
    std::string name;  // without the directory
    uint64_t bytes = 0;
    uint64_t modified_realtime_ns = 0;  // by the volume's clock
  };

  // A file on its way.
  class File {
   public:
    // What was not committed does not stand under the file's name; a volume without rename may have
    // it there nevertheless when the process dies.
    virtual ~File() = default;
    virtual absl::Status Write(std::string_view bytes) = 0;
    // That was all. It is durable; how long that takes is of its size.
    virtual absl::Status Sync() = 0;
    // After Sync: it is whole, and takes the place of one that had its name. UNAVAILABLE where a
    // volume cannot keep two writers of a name apart and another came between. Nothing is called
    // after.
    virtual absl::Status Commit() = 0;
  };

  // How a large file continues where an interruption left it, on volumes that can do so.
  struct Resumption {
    std::string token;  // what `remember` was told last of this file; empty: nothing
    // Told before the volume relies on it, so that the next one can go on.
    std::function<absl::Status(const std::string& token)> remember;
  };

  virtual ~Volume() = default;

  // Makes the directories that are missing. The same bytes have to come again from the beginning:
  // what is there of them is not sent again.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name,
                                                       Resumption resumption) = 0;
  // The whole of a small file, if nothing has the name: ALREADY_EXISTS otherwise. Of two at a time
  // one succeeds.
  virtual absl::Status CreateOnce(const std::string& name, std::string_view bytes) = 0;
  // OUT_OF_RANGE for a larger one.
  virtual absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) = 0;
  virtual absl::StatusOr<uint64_t> Size(const std::string& name) = 0;
  // The files of a directory, in any order; none where it is not there. RESOURCE_EXHAUSTED beyond
  // `entries_max`.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                                  size_t entries_max) = 0;
  // One that is not there is no error.
  virtual absl::Status Remove(const std::string& name) = 0;
  // Removes what interruptions left: under a token that nobody continues with, and the temporary
  // files of a directory with this volume's mark, which nobody else writes with now. Quiet where it
  // cannot.
  virtual void Abandon(const std::string& name, const std::string& token) = 0;
  virtual void Sweep(const std::string& directory) = 0;
  // As people write it.
  virtual std::string Where(const std::string& name) const = 0;
};

// Who writes to a volume: both of letters and digits.
struct VolumeWriter {
  std::string mark;   // of what is written, such as a capture: of it one at a time writes
  std::string nonce;  // tells two processes, and two volumes of one, apart
};

// True for a relative path of parts without control characters and backslashes, none of them empty,
// "." or "..", each of at most 255 bytes, together at most limits::kExportNameBytesMax.
bool IsVolumeName(std::string_view name);

// A file that is in memory, in place of one that is there.
absl::Status WriteWhole(Volume& volume, const std::string& name, std::string_view bytes,
                        const MayGoOn& may_go_on);

}  // namespace neurontrace
