// SPDX-License-Identifier: Apache-2.0
// For tests: the packets an agent sends.
#pragma once

#include <string.h>

#include <string>
#include <vector>

#include "tap/agent_protocol.h"

namespace neurontrace {

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

inline std::vector<uint8_t> TapTestStopPacket(uint8_t capture) {
  TapStop stop = {};
  stop.header = {kTapMessageMagic, kTapProtocolVersion,
                 static_cast<uint16_t>(TapMessageType::kStop), sizeof stop, 0};
  stop.capture_id[0] = capture;
  std::vector<uint8_t> packet(sizeof stop);
  memcpy(packet.data(), &stop, sizeof stop);
  return packet;
}

}  // namespace neurontrace
