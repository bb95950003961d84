// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/event_script.h"

#include <bit>
#include <cstdlib>

namespace neurontrace {
namespace {

struct Column {
  ValueType type;
  AttributeValue value;
};

Column ColumnOf(const EventScript::Value& value) {
  if (const auto* number = std::get_if<uint64_t>(&value)) return {ValueType::kUint, {*number, {}}};
  if (const auto* number = std::get_if<int64_t>(&value)) {
    // The agent stores a number that is not negative as unsigned, and so does this.
    if (*number >= 0) return {ValueType::kUint, {static_cast<uint64_t>(*number), {}}};
    return {ValueType::kInt, {static_cast<uint64_t>(*number), {}}};
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return {ValueType::kDouble, {std::bit_cast<uint64_t>(*number), {}}};
  }
  if (const auto* truth = std::get_if<bool>(&value))
    return {ValueType::kBool, {*truth ? 1u : 0u, {}}};
  if (const auto* json = std::get_if<EventScript::Json>(&value)) {
    return {ValueType::kJson, {0, json->text}};
  }
  return {ValueType::kString, {0, std::get<std::string>(value)}};
}

}  // namespace

void EventScript::Add(const Event& event) {
  Shape shape{
      .event_type = event.type, .phase = event.phase, .present = FieldBit(Field::kTimestamp)};
  if (event.has_thread) shape.present |= FieldBit(Field::kThreadId);
  if (event.nrta_seq_id) shape.present |= FieldBit(Field::kNrtaSeqId);
  if (event.tracking_id != 0) shape.present |= FieldBit(Field::kTrackingId);
  if (event.id != 0) shape.present |= FieldBit(Field::kId);
  std::vector<AttributeValue> values;
  for (const Attribute& attribute : event.attributes) {
    const Column column = ColumnOf(attribute.value);
    shape.keys.push_back({attribute.name, column.type, attribute.scope});
    values.push_back(column.value);
  }
  const auto id = builder_.InternShape(shape);
  if (!id.ok()) std::abort();
  const EventFields fields{.timestamp_ns = event.timestamp_ns,
                           .id = event.id,
                           .tracking_id = event.tracking_id,
                           .thread_id = event.thread_id,
                           .nrta_seq_id = event.nrta_seq_id.value_or(0)};
  if (!builder_.Append(*id, fields, values).ok()) std::abort();
}

}  // namespace neurontrace
