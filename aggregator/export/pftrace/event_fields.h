// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregator/export/pftrace/perfetto_fields.h"
#include "aggregator/export/pftrace/wire_bytes.h"

namespace neurontrace {

// Serialises the fields of one Perfetto TrackEvent into memory that is reused from event to event.
// Written by hand rather than with protozero because this is the hot path of an export. Used by one
// thread at a time.
//
// Start comes first, then the other functions in any order; the result is bytes(). The fields are
// those of track_event.proto and debug_annotation.proto, with the numbers of perfetto_fields.h.
class TrackEventFields {
 public:
  TrackEventFields() : bytes_(kRoom) {}

  // Discards the former event and begins one with this type and track.
  void Start(perfetto::EventType type, uint32_t track_uuid) {
    end_ = bytes_.data();
    end_ = wire_bytes::Byte(end_, perfetto::tag::kType);
    end_ = wire_bytes::Byte(end_, static_cast<uint8_t>(type));
    end_ = wire_bytes::Byte(end_, perfetto::tag::kTrackUuid);
    end_ = wire_bytes::Varint(end_, track_uuid);
  }
  // Writes the event's title and one of its categories. Numbers of texts are those of the Interner
  // of the event's sequence.
  void Name(uint32_t iid) {
    Ensure(kRoomPerField);
    end_ = wire_bytes::Byte(end_, perfetto::tag::kNameIid);
    end_ = wire_bytes::Varint(end_, iid);
  }
  void Category(uint32_t iid) {
    Ensure(kRoomPerField);
    end_ = wire_bytes::Byte(end_, perfetto::tag::kCategoryIid);
    end_ = wire_bytes::Varint(end_, iid);
  }
  // An arrow that starts or ends here, as flow_ids.
  void Flow(uint64_t id);
  // Writes an arrow that ends here and may end elsewhere, too; at most one for each event.
  void IncomingFlow(uint64_t id);
  // Joins slices that are parts of one operation: viewers highlight them together.
  void CorrelationId(uint64_t id);
  // Writes a counter's value, only for events of type kCounter. The integer form keeps 64 bits.
  void CounterValue(double value);
  void CounterValue(int64_t value);
  // Appends fields that were serialised before.
  void Append(std::string_view fields) {
    Ensure(fields.size() + kRoomPerField);
    end_ = wire_bytes::Bytes(end_, fields);
  }

  // Write debug annotations. Whole numbers have the same type whether or not they can be negative,
  // except for those that need all 64 bits: a query then finds one column.
  void Uint(uint32_t name_iid, uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    Number(name_iid, fits ? perfetto::tag::kIntValue : perfetto::tag::kUintValue, value);
  }
  // Negative numbers take ten bytes, as protobuf's int64 does.
  void Int(uint32_t name_iid, int64_t value) {
    Number(name_iid, perfetto::tag::kIntValue, static_cast<uint64_t>(value));
  }
  void Bool(uint32_t name_iid, bool value) {
    Number(name_iid, perfetto::tag::kBoolValue, value ? 1 : 0);
  }
  // `bits` of Double are those of the double, as chunks have them.
  void InternedString(uint32_t name_iid, uint32_t value_iid);
  void Double(uint32_t name_iid, uint64_t bits);
  void String(uint32_t name_iid, std::string_view value);

  // Returns the fields so far; valid until the next call.
  std::string_view bytes() const {
    return {bytes_.data(), static_cast<size_t>(end_ - bytes_.data())};
  }

 private:
  // The initial capacity, and an upper bound of what a field takes beside its text.
  static constexpr size_t kRoom = 4'096;
  static constexpr size_t kRoomPerField = 48;

  // Makes room before a field, so that the functions of wire_bytes need no checks.
  void Ensure(size_t bytes) {
    if (bytes_.data() + bytes_.size() < end_ + bytes) [[unlikely]]
      Grow(bytes);
  }
  // Keeps the bytes so far; end_ then points into the new memory.
  void Grow(size_t bytes);
  // Writes an annotation with a varint. Its length is below 128, so that one byte has room for it.
  void Number(uint32_t name_iid, uint8_t value_tag, uint64_t value) {
    Ensure(kRoomPerField);
    char* out = wire_bytes::Byte(end_, perfetto::tag::kAnnotation) + 1;  // its length comes last
    char* const begin = out;
    out = wire_bytes::Byte(out, perfetto::tag::kAnnotationNameIid);
    out = wire_bytes::Varint(out, name_iid);
    out = wire_bytes::Byte(out, value_tag);
    out = wire_bytes::Varint(out, value);
    begin[-1] = static_cast<char>(out - begin);
    end_ = out;
  }

  // Its size is the capacity; end_ is the end of the fields.
  std::vector<char> bytes_;
  char* end_ = nullptr;
};

}  // namespace neurontrace
