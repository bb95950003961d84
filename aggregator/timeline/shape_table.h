// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Keeps each distinct shape of a reading once, so that exporters can plan by shape number rather
// than for every chunk. Used by one thread at a time; the shapes that it returns are constant and
// may be read by any thread.
class ShapeTable {
 public:
  // Beyond either limit a shape is not kept: its chunk alone owns it, with a number from kShapesMax
  // on that no other shape has.
  static constexpr size_t kShapesMax = 16'384;
  static constexpr size_t kBytesMax = size_t{32} << 20;

  // Returns the shared form of a shape. It is owned by this table or, beyond the limits, by
  // `names`, whose `bytes` grow accordingly.
  const SharedShape* Share(const Shape& shape, ChunkNames& names);

 private:
  static std::shared_ptr<const SharedShape> Copy(const Shape& shape, uint64_t number);

  // By content, as Share serialises it.
  absl::flat_hash_map<std::string, std::shared_ptr<const SharedShape>> shapes_;
  // Bytes of shapes_ and their keys.
  size_t bytes_ = 0;
  // Scratch memory of Share.
  std::string key_;
  uint64_t next_own_number_ = kShapesMax;
};

}  // namespace neurontrace
