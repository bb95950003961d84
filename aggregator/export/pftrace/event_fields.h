// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "aggregator/export/pftrace/perfetto_fields.h"
#include "aggregator/export/pftrace/wire_bytes.h"

namespace neurontrace {

// Builds the fields of one TrackEvent in memory that is used again from event to event. One thread
// at a time.
class TrackEventFields {
 public:
  TrackEventFields() : bytes_(kRoom) {}

  // Restarts with the type and the track.
  void Start(perfetto::EventType type, uint32_t track_uuid) {
    end_ = bytes_.data();
    end_ = wire_bytes::Byte(end_, perfetto::tag::kType);
    end_ = wire_bytes::Byte(end_, static_cast<uint8_t>(type));
    end_ = wire_bytes::Byte(end_, perfetto::tag::kTrackUuid);
    end_ = wire_bytes::Varint(end_, track_uuid);
  }
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
  void Flow(uint64_t id);
  // An arrow that ends here, and may end elsewhere too; at most one an event.
  void IncomingFlow(uint64_t id);
  void CorrelationId(uint64_t id);
  void CounterValue(double value);
  void CounterValue(int64_t value);
  // Fields that were serialized before.
  void Append(std::string_view fields) {
    Ensure(fields.size() + kRoomPerField);
    end_ = wire_bytes::Bytes(end_, fields);
  }

  // Debug annotations. Whole numbers have one type, whether or not they can be negative, but for
  // those that need all 64 bits.
  void Uint(uint32_t name_iid, uint64_t value) {
    const bool fits = value <= static_cast<uint64_t>(INT64_MAX);
    Number(name_iid, fits ? perfetto::tag::kIntValue : perfetto::tag::kUintValue, value);
  }
  void Int(uint32_t name_iid, int64_t value) {
    Number(name_iid, perfetto::tag::kIntValue, static_cast<uint64_t>(value));
  }
  void Bool(uint32_t name_iid, bool value) {
    Number(name_iid, perfetto::tag::kBoolValue, value ? 1 : 0);
  }
  void InternedString(uint32_t name_iid, uint32_t value_iid);
  void Double(uint32_t name_iid, uint64_t bits);
  void String(uint32_t name_iid, std::string_view value);

  std::string_view bytes() const {
    return {bytes_.data(), static_cast<size_t>(end_ - bytes_.data())};
  }

 private:
  static constexpr size_t kRoom = 4'096;
  static constexpr size_t kRoomPerField = 48;

  void Ensure(size_t bytes) {
    if (bytes_.data() + bytes_.size() < end_ + bytes) [[unlikely]]
      Grow(bytes);
  }
  void Grow(size_t bytes);
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

  std::vector<char> bytes_;
  char* end_ = nullptr;
};

}  // namespace neurontrace
