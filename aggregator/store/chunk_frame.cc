// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/chunk_frame.h"

namespace neurontrace {
namespace {

// Writes `value` and returns the position behind it.
template <typename T>
char* PutLittleEndian(T value, char* to) {
  for (size_t i = 0; i < sizeof(T); ++i) *to++ = static_cast<char>((value >> (8 * i)) & 0xff);
  return to;
}

// Removes a number from the front. Requires enough bytes, which Decode checks once at its
// beginning.
template <typename T>
T TakeLittleEndian(std::string_view& from) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= T{static_cast<uint8_t>(from[i])} << (8 * i);
  from.remove_prefix(sizeof(T));
  return value;
}

}  // namespace

std::array<char, ChunkFrame::kBytes> ChunkFrame::Encode() const {
  std::array<char, kBytes> bytes{};
  char* at = PutLittleEndian(kVersion, bytes.data());
  at = PutLittleEndian(crc32c, at);
  at = PutLittleEndian(event_count, at);
  at = PutLittleEndian(columns_bytes, at);
  at = PutLittleEndian(header_bytes, at);
  // No gap is place 0, which no gap can have, so its two bytes need no flag.
  *at++ = static_cast<char>(gone_before ? gone_before->place : LossPlace::kUnspecified);
  *at++ = static_cast<char>(gone_before ? gone_before->reason : LossReason::kUnknown);
  at = PutLittleEndian(uint16_t{0}, at);  // reserved
  at = PutLittleEndian(first_timestamp_ns, at);
  PutLittleEndian(last_timestamp_ns, at);
  return bytes;
}

std::optional<ChunkFrame> ChunkFrame::Decode(std::string_view value) {
  if (value.size() < kBytes) return std::nullopt;
  std::string_view rest = value.substr(0, kBytes);
  if (TakeLittleEndian<uint32_t>(rest) != kVersion) return std::nullopt;
  ChunkFrame frame;
  frame.crc32c = TakeLittleEndian<uint32_t>(rest);
  frame.event_count = TakeLittleEndian<uint32_t>(rest);
  frame.columns_bytes = TakeLittleEndian<uint32_t>(rest);
  frame.header_bytes = TakeLittleEndian<uint32_t>(rest);
  const uint8_t place = TakeLittleEndian<uint8_t>(rest);
  const uint8_t reason = TakeLittleEndian<uint8_t>(rest);
  if (place > static_cast<uint8_t>(LossPlace::kRetention) ||
      reason > static_cast<uint8_t>(kLossReasonMax)) {
    return std::nullopt;
  }
  if (place != 0) {
    frame.gone_before = {static_cast<LossPlace>(place), static_cast<LossReason>(reason)};
  }
  // The reserved bytes; ignored, so that a later version can use them.
  rest.remove_prefix(2);
  frame.first_timestamp_ns = TakeLittleEndian<uint64_t>(rest);
  frame.last_timestamp_ns = TakeLittleEndian<uint64_t>(rest);
  if (frame.header_bytes > value.size() - kBytes) return std::nullopt;
  return frame;
}

}  // namespace neurontrace
