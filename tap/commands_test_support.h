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
    full.header = {kTapMessageMagic, kTapProtocolVersion,
                   static_cast<uint16_t>(TapMessageType::kStart),
                   static_cast<uint32_t>(sizeof full + tail.size()), 0};
    std::vector<uint8_t> packet(sizeof full + tail.size());
    memcpy(packet.data(), &full, sizeof full);
    memcpy(packet.data() + sizeof full, tail.data(), tail.size());
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
  start.start.begin_at_monotonic_ns = begin_at_ns;
  start.start.flags = holds ? kTapStartFlagHold : 0;
  return start;
}

inline std::vector<uint8_t> TapTestStopPacket(uint8_t capture, uint64_t stop_at_ns = 0) {
  TapStop stop = {};
  stop.header = {kTapMessageMagic, kTapProtocolVersion,
                 static_cast<uint16_t>(TapMessageType::kStop), sizeof stop, 0};
  stop.capture_id[0] = capture;
  stop.stop_at_monotonic_ns = stop_at_ns;
  return TapTestPacket(stop);
}

inline std::vector<uint8_t> TapTestCollectPacket(uint8_t recorder, uint8_t capture,
                                                 uint64_t at_ns = 0) {
  TapCollect collect = {};
  collect.header = {kTapMessageMagic, kTapProtocolVersion,
                    static_cast<uint16_t>(TapMessageType::kCollect), sizeof collect, 0};
  collect.capture_id[0] = capture;
  collect.recorder_id[0] = recorder;
  collect.at_monotonic_ns = at_ns;
  return TapTestPacket(collect);
}

}  // namespace neurontrace::tap
