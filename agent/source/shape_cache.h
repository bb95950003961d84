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

// A shape of an event, kept until its cache is emptied. A user that keeps something for each shape
// indexes it by `number` (dense, from 0) and discards everything when `generation` changes. The
// shape's views point into `names`, so it must not be copied without them.
struct CachedShape {
  Shape shape;
  uint32_t number = 0;
  uint32_t generation = 0;
  std::string names;  // what the shape's views point into
};

// Finds the shapes that a source has met, without hashing in the common case: it compares with the
// last few shapes of the same event type first. Holds at most kShapesMax shapes and kBytesMax bytes
// of names; beyond, it is emptied and a new generation begins, so that hostile input costs time but
// not memory. Used by one thread at a time.
class ShapeCache {
 public:
  static constexpr uint32_t kShapesMax = 4'096;
  static constexpr size_t kBytesMax = size_t{16} << 20;

  // The properties that identify a shape. Views are read up to 8 bytes beyond their ends, so their
  // buffers must have that padding.
  struct Query {
    std::string_view event_type;
    Phase phase = Phase::kOther;
    // Bits of fields: which the event has, and which of these were in quotes (lib/trace).
    uint32_t present = 0;
    uint32_t quoted = 0;
    std::span<const ShapeKey> keys;
  };

  ShapeCache();

  // Returns the shape, added if it is new. The reference is valid until the next call.
  const CachedShape& Find(const Query& query);

 private:
  static constexpr size_t kRecentMax = 4;
  static constexpr size_t kTypeSlots = 512;  // a power of two

  // The shapes that events of one type had last, most recent first. Types whose names hash to one
  // slot share it.
  using Recent = std::array<const CachedShape*, kRecentMax>;

  // Returns the slot of recent_ for events of this type and phase.
  static size_t TypeSlot(std::string_view event_type, Phase phase);
  // Looks the shape up by its signature, an unambiguous encoding of the query.
  const CachedShape& FindOrAdd(const Query& query);

  std::array<Recent, kTypeSlots> recent_{};
  absl::flat_hash_map<std::string, std::unique_ptr<CachedShape>> by_signature_;
  // Of the names, each counted twice; see kBytesMax.
  size_t bytes_ = 0;
  uint32_t generation_ = 1;
  std::string signature_;  // reused
};

}  // namespace neurontrace
