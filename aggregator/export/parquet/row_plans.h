// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// What becomes of the attributes of one shape's events in a row. A plain value.
struct RowPlan {
  enum class Use : uint8_t {
    kAttribute,
    kPhysicalCore,     // besides
    kExecId,           // besides
    kFrameworkStream,  // besides
    kModelName,        // elsewhere
    kStructure,        // has become something else
  };
  struct Key {
    Use use = Use::kAttribute;
    std::string json;  // ,"key":
  };
  std::vector<Key> keys;
};

// The plans of every shape of a reading, each made once. One thread at a time.
class RowPlans {
 public:
  // Shapes of a higher number are planned anew, but for the one that was asked for last.
  static constexpr size_t kShapesMax = 16'384;

  // Valid until the next call. A shape is always a framework's or never.
  const RowPlan& Of(const SharedShape& shape, bool is_framework, bool is_span);

 private:
  std::vector<std::unique_ptr<const RowPlan>> by_number_;
  RowPlan other_;
  uint64_t other_number_ = 0;  // its shape's
};

}  // namespace neurontrace
