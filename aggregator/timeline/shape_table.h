// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// The shapes of a reading, each once. One thread at a time; what it gives may be read by any.
class ShapeTable {
 public:
  // Beyond either, a shape is not kept but given to its chunk alone, with a number from kShapesMax
  // on.
  static constexpr size_t kShapesMax = 16'384;
  static constexpr size_t kBytesMax = size_t{32} << 20;

  // The shared form of a shape, kept in `names` where this table does not keep it.
  const SharedShape* Share(const Shape& shape, ChunkNames& names);

 private:
  static std::shared_ptr<const SharedShape> Copy(const Shape& shape, uint64_t number);

  absl::flat_hash_map<std::string, std::shared_ptr<const SharedShape>> shapes_;  // by content
  size_t bytes_ = 0;  // of these and their keys
  std::string key_;
  uint64_t next_own_number_ = kShapesMax;
};

}  // namespace neurontrace
