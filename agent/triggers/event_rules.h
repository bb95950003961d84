// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/source/shape_cache.h"
#include "trace/event.h"
#include "trace/trigger_rule.h"

namespace neurontrace {

// What rules want of events of one shape, found out once for each shape.
struct EventInterest {
  bool is_known = false;
  bool is_start = false;  // of an execution on a core
  bool is_stop = false;
  int8_t execution = -1;  // where among its values these numbers are; below 0: nowhere
  int8_t model = -1;
  int8_t device_time = -1;
};

// Rules against the types of events: what is worth a closer look. On one sequence.
class EventRules {
 public:
  void SetRules(const std::vector<TriggerRule>& rules);
  const EventInterest& InterestIn(const CachedShape& shape);

 private:
  bool executions_ = false;               // a rule looks at them
  std::vector<EventInterest> interests_;  // by CachedShape::number
  uint32_t generation_ = 0;
};

// The number at `index`, written as such or in quotes; nothing where it is none.
std::optional<uint64_t> NumberAt(const Shape& shape, std::span<const AttributeValue> values,
                                 int8_t index);

}  // namespace neurontrace
