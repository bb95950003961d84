// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/event.h"

namespace neurontrace {

// A shape that is kept for as long as its cache is not emptied. Whoever keeps something for each
// shape indexes it by `number` (dense, from 0) and forgets all of it when `generation` changes.
struct CachedShape {
  Shape shape;
  uint32_t number = 0;
  uint32_t generation = 0;
  std::string names;  // what the shape's views point into
};

// The shapes a source has met, found again without hashing a key: first among the last few of the
// same event type, by comparing. Holds at most kShapesMax shapes and kBytesMax of names; what goes
// beyond empties it and begins a new generation, so that hostile input costs time but no memory.
// One thread at a time.
class ShapeCache {
 public:
  static constexpr uint32_t kShapesMax = 4'096;
  static constexpr size_t kBytesMax = size_t{16} << 20;

  // What has to be told about an event to find its shape. Views are read up to 8 bytes beyond their
  // ends.
  struct Query {
    std::string_view event_type;
    Phase phase = Phase::kOther;
    uint32_t present = 0;
    uint32_t quoted = 0;
    std::span<const ShapeKey> keys;
  };

  ShapeCache();

  // The answer holds until the next call.
  const CachedShape& Find(const Query& query);

 private:
  static constexpr size_t kRecentMax = 4;
  static constexpr size_t kTypeSlots = 512;  // a power of two

  // The shapes that events of one type had last, newest first. A slot is shared by the types whose
  // names hash to it.
  using Recent = std::array<const CachedShape*, kRecentMax>;

  static size_t TypeSlot(std::string_view event_type, Phase phase);
  const CachedShape& FindOrAdd(const Query& query);

  std::array<Recent, kTypeSlots> recent_{};
  absl::flat_hash_map<std::string, std::unique_ptr<CachedShape>> by_signature_;
  size_t bytes_ = 0;
  uint32_t generation_ = 1;
  std::string signature_;  // reused
};

}  // namespace neurontrace
