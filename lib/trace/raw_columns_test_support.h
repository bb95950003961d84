// SPDX-License-Identifier: Apache-2.0
// Columns of a chunk as an agent can send them that is no builder of ours: well formed, and
// small on the wire whatever they become when they are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/trace/chunk_format.h"
#include "lib/trace/event.h"
#include "lib/trace/integer_column.h"
#include "lib/trace/varint.h"

namespace neurontrace {

struct RawKey {
  uint32_t name = 0;  // number of a string
  ValueType type = ValueType::kNull;
  KeyScope scope = KeyScope::kData;
  uint64_t value = 0;  // of each event; of text, the number of a string
};

struct RawShape {
  uint32_t event_type = 0;  // number of a string
  Phase phase = Phase::kInstant;
  uint8_t present = FieldBit(Field::kTimestamp);
  std::vector<RawKey> keys;
};

struct RawEvent {
  uint64_t timestamp_ns = 0;  // not decreasing
  uint16_t shape = 0;
  uint64_t field = 0;  // the value of each field that its shape has
};

class RawColumns {
 public:
  std::vector<std::string> strings;
  std::vector<RawShape> shapes;
  std::vector<RawEvent> events;

  std::string Bytes() const {
    std::string out(1, static_cast<char>(chunk_format::kVersion));
    for (const size_t count : {events.size(), strings.size(), shapes.size()}) Put(count, out);
    PutStrings(out);
    PutShapes(out);
    PutShapeOf(out);
    std::vector<uint64_t> times;
    for (const RawEvent& event : events) times.push_back(event.timestamp_ns);
    PutIntegers(times, out);
    for (const Field field : chunk_format::kFieldColumns) PutField(field, out);
    for (size_t s = 0; s < shapes.size(); ++s) {
      for (const RawKey& key : shapes[s].keys) PutKey(key, Rows(s), out);
    }
    return out;
  }

 private:
  static void Put(uint64_t number, std::string& out) {
    uint8_t varint[kVarintBytesMax];
    out.append(reinterpret_cast<char*>(varint), WriteVarint(number, varint) - varint);
  }
  static void PutColumn(std::string_view column, std::string& out) {
    Put(column.size(), out);
    out += column;
  }
  static void PutIntegers(const std::vector<uint64_t>& values, std::string& out) {
    std::string column(IntegerColumnBytesMax(values.size()), '\0');
    auto* const begin = reinterpret_cast<uint8_t*>(column.data());
    column.resize(EncodeIntegers(values, IntegerEncoding::kDelta, begin) - begin);
    PutColumn(column, out);
  }
  size_t Rows(size_t shape) const {
    size_t rows = 0;
    for (const RawEvent& event : events) rows += event.shape == shape;
    return rows;
  }
  void PutStrings(std::string& out) const {
    std::string lengths, text;
    for (const std::string& string : strings) {
      Put(string.size(), lengths);
      text += string;
    }
    PutColumn(lengths, out);
    PutColumn(text, out);
  }
  void PutShapes(std::string& out) const {
    std::string column;
    for (const RawShape& shape : shapes) {
      Put(shape.event_type, column);
      column += static_cast<char>(shape.phase);
      column += static_cast<char>(shape.present);
      column += '\0';  // quoted
      Put(shape.keys.size(), column);
      for (const RawKey& key : shape.keys) {
        Put(key.name, column);
        column += static_cast<char>(chunk_format::PackKey(key.type, key.scope));
      }
    }
    PutColumn(column, out);
  }
  void PutShapeOf(std::string& out) const {
    std::string column;
    for (const RawEvent& event : events) {
      column += static_cast<char>(event.shape & 0xff);
      if (shapes.size() > chunk_format::kByteShapesMax) {
        column += static_cast<char>(event.shape >> 8);
      }
    }
    PutColumn(column, out);
  }
  void PutField(Field field, std::string& out) const {
    std::vector<uint64_t> values;
    for (const RawEvent& event : events) {
      if ((shapes[event.shape].present & FieldBit(field)) != 0) values.push_back(event.field);
    }
    PutIntegers(values, out);
  }
  static void PutKey(const RawKey& key, size_t rows, std::string& out) {
    switch (key.type) {
      case ValueType::kNull:
        return;
      case ValueType::kBool:
        return PutColumn(std::string((rows + 7) / 8, '\0'), out);
      case ValueType::kDouble:
        return PutColumn(std::string(rows * 8, '\0'), out);
      default:
        return PutIntegers(std::vector<uint64_t>(rows, key.value), out);
    }
  }
};

}  // namespace neurontrace
