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

// How long one operation of a volume takes at most, if the volume can end it, as a bucket can. A
// holder of a claim asks only before each operation, so the lease must be longer than this.
inline constexpr uint64_t kVolumeOperationNs = 60'000'000'000;

// Called before each operation; an error ends what was begun and is returned.
using ContinuationCheck = std::function<absl::Status()>;

// A place where exports are delivered: a directory of a shared file system or a prefix of a bucket.
// Abstract because both are shipped, and because tests need one that fills up, fails and crashes
// between steps. Names are relative paths as IsVolumeName accepts them; what they lead to stays
// below the volume. Used by one thread at a time, together with the files that it opens, which it
// must outlive.
//
// Errors name the operation and the file:
//   NOT_FOUND            the file does not exist;
//   ALREADY_EXISTS       the name is taken;
//   RESOURCE_EXHAUSTED   the volume or a quota is full;
//   FAILED_PRECONDITION  access is denied, or something else has the name;
//   UNAVAILABLE          anything else, worth another attempt.
class Volume {
 public:
  // A file of a directory, as List returns it.
  struct Entry {
    // Without the directory.
    std::string name;
    uint64_t bytes = 0;
    // By the volume's clock, which may differ from that of this machine.
    uint64_t modified_realtime_ns = 0;
  };

  // A file that is being written, from its beginning to its end.
  class File {
   public:
    // A file that was not committed is discarded. A volume without rename may keep it under its
    // name nevertheless if the process dies.
    virtual ~File() = default;
    virtual absl::Status Write(std::string_view bytes) = 0;
    // Ends the content and makes it durable. May take long for a large file.
    virtual absl::Status Sync() = 0;
    // Called after Sync, as the last operation. The file then is whole under its name and replaces
    // an older one. Fails with UNAVAILABLE if the volume cannot keep two writers of a name apart
    // and another one interfered.
    virtual absl::Status Commit() = 0;
  };

  // How a large file continues after an interruption, on volumes that support it.
  struct Resumption {
    // The last token that `remember` received for this file; empty if there is none.
    std::string token;
    // Called before the volume relies on the token, so that a successor can continue.
    std::function<absl::Status(const std::string& token)> remember;
  };

  virtual ~Volume() = default;

  // Opens a file for writing and creates missing directories. After a resumption the same bytes
  // must be written again from the beginning; those that are there are not sent again.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name,
                                                       Resumption resumption) = 0;
  // Creates a small file with its whole content if nothing has the name, and fails with
  // ALREADY_EXISTS otherwise. Of two concurrent calls, exactly one succeeds.
  virtual absl::Status CreateOnce(const std::string& name, std::string_view bytes) = 0;
  // Returns the whole file. Fails with OUT_OF_RANGE if it is larger than `bytes_max`.
  virtual absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) = 0;
  virtual absl::StatusOr<uint64_t> Size(const std::string& name) = 0;
  // Returns the files of a directory in any order; none if it does not exist. Fails with
  // RESOURCE_EXHAUSTED beyond `entries_max`.
  virtual absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                                  size_t entries_max) = 0;
  // Removes a file. Returns OK if it does not exist.
  virtual absl::Status Remove(const std::string& name) = 0;
  // Both remove what interruptions left, as far as possible, and report no errors. Abandon removes
  // what was sent under a token that nobody continues with. Sweep removes the temporary files in a
  // directory that have this volume's mark, which requires that nobody else writes with that mark
  // now.
  virtual void Abandon(const std::string& name, const std::string& token) = 0;
  virtual void Sweep(const std::string& directory) = 0;
  // Returns the full path or URL for messages.
  virtual std::string Where(const std::string& name) const = 0;
};

// Identifies a writer. Both members consist of letters and digits.
struct VolumeWriter {
  // What is written, such as the id of a capture; one writer at a time writes it.
  std::string mark;
  // Distinguishes two processes, and two volumes of one process.
  std::string nonce;
};

// Returns whether the name is a relative path of parts without control characters and backslashes.
// No part is empty, "." or "..", each has at most 255 bytes, and the whole at most
// limits::kExportNameBytesMax.
bool IsVolumeName(std::string_view name);

// Writes a file from memory, replacing one that exists. Calls `check_continuation` before each
// operation.
absl::Status WriteWhole(Volume& volume, const std::string& name, std::string_view bytes,
                        const ContinuationCheck& check_continuation);

}  // namespace neurontrace
