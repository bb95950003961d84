// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "lib/trace/ids.h"

namespace rocksdb {
class Iterator;
}

namespace neurontrace {

// One digest of a stream as it is stored. `first` is the lowest sequence that a digest of this
// level and place can have. To this class the value is bytes; aggregator/view encodes it. A plain
// value.
struct StoredDigest {
  uint8_t level = 0;
  uint64_t first = 0;
  std::string value;
};

// Reads digests as they were when it was opened, so that values which belong together match. Keeps
// their files until it is destroyed. Used by one thread at a time; the database must outlive it.
class DigestReader {
 public:
  explicit DigestReader(std::unique_ptr<rocksdb::Iterator> iterator);
  ~DigestReader();

  // Returns the stream's first digest of the level at or after `from`, nullopt if there is none.
  absl::StatusOr<std::optional<StoredDigest>> Next(const CaptureId& capture, uint32_t stream,
                                                   uint8_t level, uint64_t from);
  // Returns the stream's last digest of the level, nullopt if there is none.
  absl::StatusOr<std::optional<StoredDigest>> Last(const CaptureId& capture, uint32_t stream,
                                                   uint8_t level);

 private:
  // Moves to the first value at or after this place if that is where the iterator is, or the next
  // one: a step is faster than a search. Returns false if it may be elsewhere.
  bool Step(const CaptureId& capture, uint32_t stream, uint8_t level, uint64_t from);

  const std::unique_ptr<rocksdb::Iterator> iterator_;
};

}  // namespace neurontrace
