// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/base/sha256.h"

namespace rocksdb {
class Env;
class WritableFile;
}  // namespace rocksdb

namespace neurontrace {

// Contents in files named by their SHA-256: DIRECTORY/ab/ab12…, and DIRECTORY/partial/ab12… while
// one is being received. A file gets its place by a rename once all of it has come, has the hash
// and is on the disk; so what is in a place is whole. Any thread.
class ArtifactFiles {
 public:
  // A content that is being received. One thread at a time; not beyond its ArtifactFiles. What has
  // come by its end, whole or not, is where the next one continues.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    uint64_t offset() const { return offset_; }
    // OUT_OF_RANGE beyond the size that was told. Errors of the disk.
    absl::Status Append(std::string_view bytes);
    // Puts it in its place. FAILED_PRECONDITION while bytes are missing; DATA_LOSS where they are
    // not those of the hash: all of them are then gone.
    absl::Status Finish();

   private:
    friend class ArtifactFiles;
    Upload(ArtifactFiles& files, std::string sha256, uint64_t bytes);

    ArtifactFiles& files_;
    const std::string sha256_;
    const uint64_t bytes_;
    uint64_t offset_ = 0;
    bool is_settled_ = false;  // Finish has stored or removed the bytes
    Sha256 hash_;
    std::unique_ptr<rocksdb::WritableFile> file_;
  };

  ArtifactFiles(std::string directory, rocksdb::Env& env);
  ~ArtifactFiles();

  // Finds out what is there. Once, before anything else. Where nothing was ever kept nothing is
  // made.
  absl::Status Open();
  void SetBytesMax(uint64_t bytes_max);

  bool Has(const std::string& sha256) const;
  // How much of it has come.
  uint64_t Received(const std::string& sha256) const;
  // UNAVAILABLE while another one receives it, or too many receive; RESOURCE_EXHAUSTED where it
  // does not fit. Reads what has come before, for its hash.
  absl::StatusOr<std::unique_ptr<Upload>> Receive(const std::string& sha256, uint64_t bytes);
  absl::Status Remove(const std::string& sha256);
  // The bytes from `offset` on, fewer at the end. NOT_FOUND where there is no such content.
  absl::StatusOr<std::string> Read(const std::string& sha256, uint64_t offset,
                                   size_t bytes_max) const;

  std::set<std::string> All() const;  // their hashes
  uint64_t bytes() const;             // with what is being received
  size_t size() const;

 private:
  struct Partial {
    uint64_t bytes = 0;  // that it takes or will take
    uint64_t used_us = 0;
    bool receiving = false;
  };

  std::string PlaceOf(std::string_view sha256) const;
  std::string PartialOf(std::string_view sha256) const;
  absl::Status MakeDirectory(const std::string& path) const;
  absl::Status SyncDirectory(const std::string& path) const;
  absl::Status Reserve(const std::string& sha256, uint64_t bytes) NT_EXCLUDES(mutex_);
  void RemoveStalePartials() NT_REQUIRES(mutex_);
  // Removes what is left of a partial.
  void Forget(const std::string& sha256) NT_REQUIRES(mutex_);
  absl::Status TakeUp(Upload& upload) const;

  const std::string directory_;
  rocksdb::Env& env_;
  mutable Mutex mutex_;
  std::map<std::string, uint64_t> contents_ NT_GUARDED_BY(mutex_);  // hash to size
  std::map<std::string, Partial> partials_ NT_GUARDED_BY(mutex_);
  uint64_t bytes_ NT_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_max_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
