// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "agent/source/shape_cache.h"
#include "lib/trace/event.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace {

// What rules want of events of one shape, determined once for each shape. Bounds the cost of an
// event to one look-up in a vector.
struct EventInterest {
  // Set once the shape was examined, whatever the result.
  bool is_known = false;
  bool is_start = false;  // of an execution on a core
  bool is_stop = false;
  int8_t execution = -1;  // where among its values these numbers are; below 0: nowhere
  int8_t model = -1;
  int8_t device_time = -1;
};

// Decides by the types of events which of them rules have to examine. On one sequence.
class EventRules {
 public:
  // Forgets all interests, as the new rules may have others.
  void SetRules(const std::vector<TriggerRule>& rules);
  // Returns the interest in events of this shape. Valid until the next call of any function.
  const EventInterest& InterestIn(const CachedShape& shape);

 private:
  // Without such a rule no shape is of interest.
  bool executions_ = false;               // a rule looks at them
  std::vector<EventInterest> interests_;  // by CachedShape::number
  uint32_t generation_ = 0;
};

// Returns the number at `index`, written as a number or in quotes; nothing if it is none. Pure.
// `values` has one value for each key of the shape, and `index` is one of FindNumber or below 0.
std::optional<uint64_t> NumberAt(const Shape& shape, std::span<const AttributeValue> values,
                                 int8_t index);

}  // namespace neurontrace
