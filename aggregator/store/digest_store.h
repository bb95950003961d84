// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/digest_reader.h"
#include "lib/trace/ids.h"

namespace neurontrace {

class Database;

// Keeps digests: coarse copies of chunks for the page (docs/decisions/0042). They are derived and
// can be dropped at any time. Nothing is synced: what a crash takes is made again. Any thread; the
// database must outlive it.
class DigestStore {
 public:
  explicit DigestStore(Database& database) : database_(database) {}
  DigestStore(const DigestStore&) = delete;
  DigestStore& operator=(const DigestStore&) = delete;

  // Stores the digests of one stream in one write, and replaces those of the same places.
  absl::Status Put(const CaptureId& capture, uint32_t stream,
                   std::span<const StoredDigest> digests);
  // Returns the stream's first digest of the level at or after `from`, or its last one; nullopt if
  // there is none.
  absl::StatusOr<std::optional<StoredDigest>> Next(const CaptureId& capture, uint32_t stream,
                                                   uint8_t level, uint64_t from) const;
  absl::StatusOr<std::optional<StoredDigest>> Last(const CaptureId& capture, uint32_t stream,
                                                   uint8_t level) const;

  // Returns a reader for many digests at once.
  std::unique_ptr<DigestReader> OpenReader() const;

  // Deletes the stream's digests of the level whose `first` is in [begin, end).
  absl::Status DeleteRange(const CaptureId& capture, uint32_t stream, uint8_t level, uint64_t begin,
                           uint64_t end);
  // Deletes all digests of the capture and returns their space to the disk, which can take seconds.
  absl::Status Delete(const CaptureId& capture);
  // Called at start. Deletes digests of captures that no longer exist.
  absl::Status FinishDeletions();

  // Returns the bytes of all digests in files and in memory, roughly.
  uint64_t Bytes() const;

 private:
  Database& database_;
};

}  // namespace neurontrace
