// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/event_rules.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The event type of the Neuron Runtime for one execution of a model on a core, with a start and a
// stop.
constexpr std::string_view kExecutionType = "nc_exec_running";

// Returns the index of the data attribute `name` in the shape; -1 if there is none that may hold a
// number. Strings count, as numbers may be in quotes.
int8_t FindNumber(const Shape& shape, std::string_view name) {
  static_assert(limits::kAttributesPerEventMax <= INT8_MAX);
  for (size_t i = 0; i < shape.keys.size(); ++i) {
    const ShapeKey& key = shape.keys[i];
    const bool number = key.type == ValueType::kUint || key.type == ValueType::kString;
    if (number && key.scope == KeyScope::kData && key.name == name) return static_cast<int8_t>(i);
  }
  return -1;
}

}  // namespace

std::optional<uint64_t> NumberAt(const Shape& shape, std::span<const AttributeValue> values,
                                 int8_t index) {
  if (index < 0) return std::nullopt;
  const AttributeValue& value = values[static_cast<size_t>(index)];
  if (shape.keys[static_cast<size_t>(index)].type == ValueType::kUint) return value.bits;
  uint64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  // Only a whole decimal number counts.
  const auto parsed = std::from_chars(value.text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

void EventRules::SetRules(const std::vector<TriggerRule>& rules) {
  interests_.clear();
  executions_ = std::any_of(rules.begin(), rules.end(), [](const TriggerRule& rule) {
    return rule.kind == TriggerKind::kSlowExecution;
  });
}

const EventInterest& EventRules::InterestIn(const CachedShape& cached) {
  // The shape cache was emptied, so its numbers mean other shapes.
  if (generation_ != cached.generation) {
    interests_.clear();
    generation_ = cached.generation;
  }
  if (interests_.size() <= cached.number) interests_.resize(cached.number + 1);
  EventInterest& interest = interests_[cached.number];
  if (interest.is_known) return interest;
  interest.is_known = true;
  const Shape& shape = cached.shape;
  if (executions_ && shape.event_type == kExecutionType &&
      (shape.present & FieldBit(Field::kTrackingId)) != 0) {
    interest.is_start = shape.phase == Phase::kStart;
    interest.is_stop = shape.phase == Phase::kStop;
    interest.execution = FindNumber(shape, "exec_id");
    interest.model = FindNumber(shape, "model_id");
    interest.device_time = FindNumber(shape, "nc_timestamp_ns");
  }
  return interest;
}

}  // namespace neurontrace
