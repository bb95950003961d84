// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// How the attributes of one shape's events are put into a row. A plain value.
struct RowPlan {
  // Which column a key fills in addition to, or instead of, the JSON of attributes.
  enum class Use : uint8_t {
    kAttribute,
    // The values from here on name the column that gets the value in addition to the attributes.
    // Also the column pcore_idx.
    kPhysicalCore,
    // Also the column nt_exec_id.
    kExecId,
    // Also the column framework_stream_id.
    kFrameworkStream,
    // Not here: EventRowMaker::AddModel writes it.
    kModelName,
    // Not here: it became a column of its own.
    kStructure,
  };
  struct Key {
    Use use = Use::kAttribute;
    // The member's begin: ,"key":
    std::string json;
  };
  // One for each key of the shape, in its order.
  std::vector<Key> keys;
};

// The plans of every shape of a reading, each made once. Used by one thread at a time.
class RowPlans {
 public:
  // Shapes with higher numbers are planned again, except for the one that was asked for last.
  static constexpr size_t kShapesMax = 16'384;

  // Returns the plan of a shape, which is either always a framework's or never. The result is valid
  // until the next call.
  const RowPlan& Of(const SharedShape& shape, bool is_framework, bool is_span);

 private:
  std::vector<std::unique_ptr<const RowPlan>> by_number_;
  RowPlan other_;
  // The number of the shape of other_.
  uint64_t other_number_ = 0;
};

}  // namespace neurontrace
