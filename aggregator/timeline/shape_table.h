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
  // Beyond, a shape is not kept but given to its chunk alone.
  static constexpr size_t kShapesMax = 16'384;

  // The shared form of a shape, kept in `names` where this table does not keep it.
  const SharedShape* Share(const Shape& shape, ChunkNames& names);

 private:
  std::shared_ptr<const SharedShape> Copy(const Shape& shape);

  absl::flat_hash_map<std::string, std::shared_ptr<const SharedShape>> shapes_;  // by content
  std::string key_;
  uint64_t next_number_ = 0;
};

}  // namespace neurontrace
