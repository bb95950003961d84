// SPDX-License-Identifier: Apache-2.0
// Events that own their text, a seeded source of odd ones, and the comparison with what was read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/base/random.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event.h"
#include "lib/trace/event_chunk_builder.h"
#include "lib/trace/limits.h"

namespace neurontrace {

struct OwnedKey {
  std::string name;
  ValueType type = ValueType::kNull;
  KeyScope scope = KeyScope::kData;
};

struct OwnedValue {
  uint64_t bits = 0;
  std::string text;
};

struct OwnedEvent {
  std::string event_type;
  Phase phase = Phase::kOther;
  uint32_t present = FieldBit(Field::kTimestamp);
  uint32_t quoted = 0;
  std::vector<OwnedKey> keys;
  EventFields fields;
  std::vector<OwnedValue> values;

  Shape shape() const {
    Shape shape{event_type, phase, present, quoted, {}};
    for (const OwnedKey& key : keys) shape.keys.push_back({key.name, key.type, key.scope});
    return shape;
  }
};

inline absl::Status AppendTo(EventChunkBuilder& builder, const OwnedEvent& event) {
  const auto shape = builder.InternShape(event.shape());
  if (!shape.ok()) return shape.status();
  std::vector<AttributeValue> values;
  for (const OwnedValue& value : event.values) values.push_back({value.bits, value.text});
  return builder.Append(*shape, event.fields, values);
}

// What a reader must see of `fields`: absent ones are 0.
inline EventFields Visible(const OwnedEvent& event) {
  const auto if_present = [&event](Field field, auto value) {
    return (event.present & FieldBit(field)) != 0 ? value : decltype(value){0};
  };
  const EventFields& f = event.fields;
  return {f.timestamp_ns,
          if_present(Field::kId, f.id),
          if_present(Field::kNcLocalId, f.nc_local_id),
          if_present(Field::kTrackingId, f.tracking_id),
          if_present(Field::kThreadId, f.thread_id),
          if_present(Field::kNrtaSeqId, f.nrta_seq_id),
          if_present(Field::kWorkerGid, f.worker_gid)};
}

// Makes events of a limited number of shapes with values of every type and size.
class ExtremeEvents {
 public:
  ExtremeEvents(uint64_t seed, uint32_t shapes) : random_(seed) {
    for (uint32_t i = 0; i < shapes; ++i) shapes_.push_back(MakeShape(i));
  }

  OwnedEvent Next() {
    OwnedEvent event = shapes_[Below(shapes_.size())];
    clock_ += Below(4) == 0 ? 0 - Below(1000) : Below(5000);  // backwards now and then
    event.fields = {clock_,
                    Number(),
                    counter_++,
                    Number(),
                    Below(300),
                    Number(),
                    static_cast<int64_t>(Number())};
    for (const OwnedKey& key : event.keys) event.values.push_back(MakeValue(key.type));
    return event;
  }

  uint64_t Below(uint64_t end) { return random_.Next64() % end; }

 private:
  // Small and large alike; over 2^53 and over 2^63 too.
  uint64_t Number() { return random_.Next64() >> Below(64); }

  std::string Text() {
    static constexpr size_t kLengths[] = {0, 1, 5, 20, 20, 300};
    const size_t length = Below(2000) == 0 ? 65'536 : kLengths[Below(6)];
    std::string text(length, static_cast<char>(Below(256)));
    if (length > 1) text[Below(length)] = static_cast<char>(Below(256));
    return text;
  }

  OwnedValue MakeValue(ValueType type) {
    switch (type) {
      case ValueType::kNull:
        return {};
      case ValueType::kBool:
        return {Below(2), {}};
      case ValueType::kUint:
        return {Number(), {}};
      case ValueType::kInt:
        return {uint64_t{1} << 63 | Number(), {}};
      case ValueType::kDouble:
        return {random_.Next64() & ~(uint64_t{1} << 62), {}};
      case ValueType::kString:
      case ValueType::kJson:
        return {0, Text()};
    }
    return {};
  }

  OwnedEvent MakeShape(uint32_t number) {
    OwnedEvent shape;
    shape.event_type = "type_" + std::to_string(number / 2);
    shape.phase = static_cast<Phase>(Below(kPhaseMax + 1));
    shape.present = static_cast<uint32_t>(Below(256)) | FieldBit(Field::kTimestamp);
    shape.quoted = static_cast<uint32_t>(Below(256)) & shape.present;
    const size_t keys = Below(20) == 0 ? 64 : Below(6);
    for (size_t k = 0; k < keys; ++k) {
      shape.keys.push_back({"key_" + std::to_string(Below(40)),
                            static_cast<ValueType>(Below(kValueTypeMax + 1)),
                            static_cast<KeyScope>(Below(2))});
    }
    return shape;
  }

  SeededRandom random_;
  std::vector<OwnedEvent> shapes_;
  uint64_t clock_ = 1'752'016'143'399'937'378;
  uint64_t counter_ = 0;
};

// The order in which a chunk keeps events.
inline void SortByTimestamp(std::vector<OwnedEvent>& events) {
  std::stable_sort(events.begin(), events.end(), [](const OwnedEvent& a, const OwnedEvent& b) {
    return a.fields.timestamp_ns < b.fields.timestamp_ns;
  });
}

// What is different between event number `at` of `chunk` and `expected`; empty when nothing is.
inline std::string Difference(const DecodedChunk& chunk, size_t at, const OwnedEvent& expected) {
  const uint16_t number = chunk.shape_of()[at];
  const Shape& shape = chunk.shapes()[number];
  if (shape != expected.shape()) return "shape";
  if (chunk.fields(at) != Visible(expected)) return "fields";
  for (uint32_t k = 0; k < shape.keys.size(); ++k) {
    const AttributeValue value = chunk.value(at, k);
    const OwnedValue& wanted = expected.values[k];
    if (value.text != wanted.text || value.bits != wanted.bits) {
      return "value of " + expected.keys[k].name;
    }
  }
  return {};
}

// The first promise of DecodedChunk that `chunk` does not keep; empty when it keeps all. Touches
// everything, so that a sanitizer sees what lies outside its bounds.
inline std::string BrokenPromise(const DecodedChunk& chunk) {
  if (chunk.size() > limits::kChunkEventsMax) return "too many events";
  if (chunk.strings().size() > limits::kChunkStringsMax) return "too many strings";
  std::vector<uint32_t> rows(chunk.shapes().size(), 0);
  uint64_t before = 0;
  for (size_t i = 0; i < chunk.size(); ++i) {
    if (chunk.timestamp_ns()[i] < before) return "time runs backwards";
    before = chunk.timestamp_ns()[i];
    const uint16_t number = chunk.shape_of()[i];
    if (number >= chunk.shapes().size()) return "shape index";
    if (chunk.row_of()[i] != rows[number]++) return "row";
    const Shape& shape = chunk.shapes()[number];
    if (static_cast<uint8_t>(shape.phase) > kPhaseMax) return "phase";
    if (shape.keys.size() > limits::kAttributesPerEventMax) return "too many keys";
    for (uint32_t k = 0; k < shape.keys.size(); ++k) {
      if (static_cast<uint8_t>(shape.keys[k].type) > kValueTypeMax) return "value type";
      if (shape.keys[k].name.size() > limits::kStringBytesMax) return "long name";
      if (chunk.column(number, k).size() <= chunk.row_of()[i]) return "column length";
      const bool text =
          shape.keys[k].type == ValueType::kString || shape.keys[k].type == ValueType::kJson;
      const uint64_t bits = chunk.column(number, k)[chunk.row_of()[i]];
      if (text && bits >= chunk.strings().size()) return "string index";
      if (text && chunk.value(i, k).text.size() > limits::kStringBytesMax) return "long string";
    }
  }
  return {};
}

// Event number `at` as a producer would have made it.
inline OwnedEvent Owned(const DecodedChunk& chunk, size_t at) {
  const Shape& shape = chunk.shapes()[chunk.shape_of()[at]];
  OwnedEvent event{std::string(shape.event_type),
                   shape.phase,
                   shape.present,
                   shape.quoted,
                   {},
                   chunk.fields(at),
                   {}};
  for (uint32_t k = 0; k < shape.keys.size(); ++k) {
    event.keys.push_back(
        {std::string(shape.keys[k].name), shape.keys[k].type, shape.keys[k].scope});
    const AttributeValue value = chunk.value(at, k);
    event.values.push_back({value.bits, std::string(value.text)});
  }
  return event;
}

}  // namespace neurontrace
