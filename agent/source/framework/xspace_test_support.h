// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "agent/source/framework/xspace_reader.h"

// Writes the wire format of XSpace files, good ones and others.
namespace neurontrace::xspace_test {

inline std::string Varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}
inline std::string Number(uint32_t field, int64_t value) {
  return Varint(field << 3) + Varint(static_cast<uint64_t>(value));
}
inline std::string Bytes(uint32_t field, std::string_view bytes) {
  return Varint(field << 3 | 2) + Varint(bytes.size()) + std::string(bytes);
}
inline std::string Double(uint32_t field, double value) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &value, 8);
  return Varint(field << 3 | 1) + bytes;
}

inline std::string Entry(int64_t id, std::string_view name, std::string_view more = {}) {
  return Number(1, id) + Bytes(2, Number(1, id) + Bytes(2, name) + std::string(more));
}
inline std::string EventName(int64_t id, std::string_view name, std::string_view more = {}) {
  return Bytes(4, Entry(id, name, more));
}
inline std::string StatName(int64_t id, std::string_view name) { return Bytes(5, Entry(id, name)); }
inline std::string UintStat(int64_t id, uint64_t value) {
  return Number(1, id) + Number(3, static_cast<int64_t>(value));
}
inline std::string Event(int64_t name, int64_t offset_ps, int64_t duration_ps,
                         std::string_view more = {}) {
  return Bytes(4,
               Number(1, name) + Number(2, offset_ps) + Number(3, duration_ps) + std::string(more));
}
inline std::string Line(int64_t id, std::string_view name, int64_t timestamp_ns,
                        std::string_view events) {
  return Bytes(3, Number(1, id) + Bytes(2, name) + Number(3, timestamp_ns) + std::string(events));
}
inline std::string Plane(std::string_view name, std::string_view rest) {
  return Bytes(1, Bytes(2, name) + std::string(rest));
}
// The plane that says when the session began.
inline std::string Environment(uint64_t start_ns) {
  return Plane("Task Environment",
               StatName(1, "profile_start_time") + Bytes(6, UintStat(1, start_ns)));
}
inline std::string ProcessId(uint32_t pid) {
  return StatName(99, "process_id") + Bytes(6, UintStat(99, pid));
}

inline XSpaceInput InputOf(std::string_view bytes) {
  return {.read = [bytes](uint64_t offset, char* out, size_t size) -> absl::StatusOr<size_t> {
            return offset >= bytes.size() ? 0 : bytes.copy(out, size, offset);
          },
          .size = bytes.size()};
}

inline XSpaceFacts FactsOf(std::string_view bytes) {
  XSpaceScan scan(InputOf(bytes));
  while (!scan.Step()) {
  }
  return scan.facts();
}

}  // namespace neurontrace::xspace_test
