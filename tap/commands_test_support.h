// SPDX-License-Identifier: Apache-2.0
// For tests: the packets an agent sends.
#pragma once

#include <string.h>

#include <string>
#include <vector>

#include "tap/agent_protocol.h"

namespace neurontrace::tap {

struct TapTestStart {
  TapStart start = {};
  std::vector<std::string> names;
  int64_t name_count_claimed = -1;
  // Commands of version 2 have these.
  uint16_t version = kTapProtocolVersionOldest;
  uint64_t begin_at_ns = 0;

  explicit TapTestStart(uint8_t capture = 1) {
    start.capture_id[0] = capture;
    start.max_events_per_nc = 65536;
  }

  std::vector<uint8_t> Packet() const {
    std::string tail;
    for (const std::string& name : names) tail.append(name.c_str(), name.size() + 1);
    TapStart full = start;
    full.name_count =
        static_cast<uint32_t>(name_count_claimed >= 0 ? name_count_claimed : names.size());
    full.names_bytes = static_cast<uint32_t>(tail.size());
    const size_t fixed = version == 1 ? sizeof full : sizeof(TapStartAt);
    full.header = {kTapMessageMagic, version, static_cast<uint16_t>(TapMessageType::kStart),
                   static_cast<uint32_t>(fixed + tail.size()), 0};
    const TapStartAt at = {full, begin_at_ns};
    std::vector<uint8_t> packet(fixed + tail.size());
    memcpy(packet.data(), &at, fixed);
    memcpy(packet.data() + fixed, tail.data(), tail.size());
    return packet;
  }
};

template <typename Message>
std::vector<uint8_t> TapTestPacket(const Message& message) {
  std::vector<uint8_t> packet(sizeof message);
  memcpy(packet.data(), &message, sizeof message);
  return packet;
}

inline TapTestStart TapTestStartAt(uint8_t capture, uint64_t begin_at_ns, bool holds = false) {
  TapTestStart start(capture);
  start.version = 2;
  start.begin_at_ns = begin_at_ns;
  start.start.flags = holds ? kTapStartFlagHold : 0;
  return start;
}

inline std::vector<uint8_t> TapTestStopPacket(uint8_t capture) {
  TapStop stop = {};
  stop.header = {kTapMessageMagic, kTapProtocolVersionOldest,
                 static_cast<uint16_t>(TapMessageType::kStop), sizeof stop, 0};
  stop.capture_id[0] = capture;
  return TapTestPacket(stop);
}

inline std::vector<uint8_t> TapTestStopAtPacket(uint8_t capture, uint64_t stop_at_ns) {
  TapStopAt at = {};
  at.stop.header = {kTapMessageMagic, 2, static_cast<uint16_t>(TapMessageType::kStop), sizeof at,
                    0};
  at.stop.capture_id[0] = capture;
  at.stop_at_monotonic_ns = stop_at_ns;
  return TapTestPacket(at);
}

inline std::vector<uint8_t> TapTestCollectPacket(uint8_t recorder, uint8_t capture,
                                                 uint64_t at_ns = 0) {
  TapCollect collect = {};
  collect.header = {kTapMessageMagic, 2, static_cast<uint16_t>(TapMessageType::kCollect),
                    sizeof collect, 0};
  collect.capture_id[0] = capture;
  collect.recorder_id[0] = recorder;
  collect.at_monotonic_ns = at_ns;
  return TapTestPacket(collect);
}

}  // namespace neurontrace::tap
