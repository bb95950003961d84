// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/event_fields.h"

#include <algorithm>
#include <bit>

namespace neurontrace {

namespace tag = perfetto::tag;

// Doubles at least, so that a long event costs linear time.
void TrackEventFields::Grow(size_t bytes) {
  const size_t used = static_cast<size_t>(end_ - bytes_.data());
  bytes_.resize(std::max(2 * bytes_.size(), used + bytes));
  end_ = bytes_.data() + used;
}

// Tags above 127 take two bytes, hence Varint instead of Byte.
void TrackEventFields::Flow(uint64_t id) {
  Ensure(kRoomPerField);
  end_ = wire_bytes::Varint(end_, tag::kFlowId);
  end_ = wire_bytes::Fixed64(end_, id);
}

// LegacyEvent's bind_id with the direction "in": Perfetto ends the arrow at this event, and another
// event can still end one with the same id.
void TrackEventFields::IncomingFlow(uint64_t id) {
  Ensure(kRoomPerField);
  // Message fields are below 128 bytes long, so that their length takes one byte and can be filled
  // in afterwards.
  char* out = wire_bytes::Byte(end_, tag::kLegacyEvent) + 1;  // its length comes last
  char* const begin = out;
  out = wire_bytes::Byte(out, tag::kLegacyBindId);
  out = wire_bytes::Varint(out, id);
  out = wire_bytes::Byte(out, tag::kLegacyFlowDirection);
  out = wire_bytes::Byte(out, perfetto::kLegacyFlowIn);
  begin[-1] = static_cast<char>(out - begin);
  end_ = out;
}

void TrackEventFields::CorrelationId(uint64_t id) {
  Ensure(kRoomPerField);
  end_ = wire_bytes::Varint(end_, tag::kCorrelationId);
  end_ = wire_bytes::Varint(end_, id);
}

void TrackEventFields::CounterValue(double value) {
  Ensure(kRoomPerField);
  end_ = wire_bytes::Varint(end_, tag::kDoubleCounterValue);
  end_ = wire_bytes::Fixed64(end_, std::bit_cast<uint64_t>(value));
}

void TrackEventFields::CounterValue(int64_t value) {
  Ensure(kRoomPerField);
  end_ = wire_bytes::Varint(end_, tag::kCounterValue);
  end_ = wire_bytes::Varint(end_, static_cast<uint64_t>(value));
}

// Both texts must have been interned in the event's sequence, and must be in the file before the
// event; PacketWriter sees to the latter.
void TrackEventFields::InternedString(uint32_t name_iid, uint32_t value_iid) {
  Ensure(kRoomPerField);
  char* out = wire_bytes::Byte(end_, tag::kAnnotation) + 1;
  char* const begin = out;
  out = wire_bytes::Byte(out, tag::kAnnotationNameIid);
  out = wire_bytes::Varint(out, name_iid);
  out = wire_bytes::Varint(out, tag::kStringValueIid);
  out = wire_bytes::Varint(out, value_iid);
  begin[-1] = static_cast<char>(out - begin);
  end_ = out;
}

void TrackEventFields::Double(uint32_t name_iid, uint64_t bits) {
  Ensure(kRoomPerField);
  char* out = wire_bytes::Byte(end_, tag::kAnnotation) + 1;
  char* const begin = out;
  out = wire_bytes::Byte(out, tag::kAnnotationNameIid);
  out = wire_bytes::Varint(out, name_iid);
  out = wire_bytes::Byte(out, tag::kDoubleValue);
  out = wire_bytes::Fixed64(out, bits);
  begin[-1] = static_cast<char>(out - begin);
  end_ = out;
}

void TrackEventFields::String(uint32_t name_iid, std::string_view value) {
  Ensure(value.size() + kRoomPerField);
  // The text may be long, so that the length must be known beforehand.
  const size_t length = 1 + wire_bytes::VarintBytes(name_iid) + 1 +
                        wire_bytes::VarintBytes(value.size()) + value.size();
  char* out = wire_bytes::Byte(end_, tag::kAnnotation);
  out = wire_bytes::Varint(out, length);
  out = wire_bytes::Byte(out, tag::kAnnotationNameIid);
  out = wire_bytes::Varint(out, name_iid);
  out = wire_bytes::Byte(out, tag::kStringValue);
  out = wire_bytes::Varint(out, value.size());
  end_ = wire_bytes::Bytes(out, value);
}

}  // namespace neurontrace
