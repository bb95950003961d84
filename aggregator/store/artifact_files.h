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

// Keeps the contents of artifacts in files named by their SHA-256: DIRECTORY/ab/ab12…, and
// DIRECTORY/partial/ab12… while one is being received. A file is renamed to its place once it is
// complete, has the right hash and is synced, so every file in its place is whole after any crash.
//
// Hashes are 32 raw bytes here, not hexadecimal. Any thread may call; the mutex is held for a few
// system calls, not while contents are read or written.
class ArtifactFiles {
 public:
  // Receives one content. Used by one thread at a time; must not outlive its ArtifactFiles. Bytes
  // that have arrived when it is destroyed stay in the partial file, and the next Upload of the
  // same hash continues behind them.
  class Upload {
   public:
    ~Upload();
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;

    // Returns how many bytes have arrived, earlier uploads included: where the sender continues.
    uint64_t offset() const { return offset_; }
    // Appends to the file. Fails with OUT_OF_RANGE if more bytes come than Receive announced, else
    // with the error of the disk.
    absl::Status Append(std::string_view bytes);
    // Syncs the file and moves it to its place. Fails with FAILED_PRECONDITION if bytes are
    // missing, and with DATA_LOSS if they do not have the hash; the partial file is then deleted,
    // as nothing shows which of its bytes are wrong.
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

  // Creates nothing; the limit is limits::kArtifactStoreBytesDefault until SetBytesMax. `env` is
  // not owned and must outlive this.
  ArtifactFiles(std::string directory, rocksdb::Env& env);
  ~ArtifactFiles();

  // Lists the files that exist. Called once, before any other method. Creates nothing, so a store
  // that never kept an artifact has no directory for them.
  absl::Status Open();
  // Sets the limit, in bytes, of all contents and partial files together. Applies to uploads that
  // begin later; nothing is deleted to meet a lower one.
  void SetBytesMax(uint64_t bytes_max);

  // Returns whether the content is complete and in its place.
  bool Has(const std::string& sha256) const;
  // Returns how many bytes of an incomplete content have arrived; 0 if none is known.
  uint64_t Received(const std::string& sha256) const;
  // Begins or continues to receive a content of `bytes` bytes in all, which are reserved. Fails
  // with UNAVAILABLE if another upload receives the same content or limits::kArtifactUploadsMax are
  // running, and with RESOURCE_EXHAUSTED if the limit or the disk has no room. Reads what has
  // arrived before in order to continue its hash.
  absl::StatusOr<std::unique_ptr<Upload>> Receive(const std::string& sha256, uint64_t bytes);
  // Deletes a content; OK if there is none. The caller makes sure that no reference needs it.
  absl::Status Remove(const std::string& sha256);
  // Returns up to `bytes_max` bytes from `offset` on, fewer at the end and none behind it. Fails
  // with NOT_FOUND if there is no such content.
  absl::StatusOr<std::string> Read(const std::string& sha256, uint64_t offset,
                                   size_t bytes_max) const;

  std::set<std::string> All() const;  // hashes of all complete contents
  uint64_t bytes() const;             // of contents and partial files, reserved bytes included
  size_t size() const;                // number of complete contents

 private:
  struct Partial {
    uint64_t bytes = 0;    // on the disk, or reserved while receiving
    uint64_t used_us = 0;  // Env::NowMicros of the last use
    bool receiving = false;
  };

  std::string PlaceOf(std::string_view sha256) const;
  std::string PartialOf(std::string_view sha256) const;
  absl::Status MakeDirectory(const std::string& path) const;
  absl::Status SyncDirectory(const std::string& path) const;
  // Checks limits and disk for `bytes` and counts them as used.
  absl::Status Reserve(const std::string& sha256, uint64_t bytes) NT_EXCLUDES(mutex_);
  // Makes room for one more partial file: forgets those that are too old and, at
  // limits::kArtifactPartialsMax, the one that has been idle the longest.
  void RemoveStalePartials() NT_REQUIRES(mutex_);
  // Deletes a partial file and gives its bytes back.
  void Forget(const std::string& sha256) NT_REQUIRES(mutex_);
  // Opens the partial file and hashes what it holds already.
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
