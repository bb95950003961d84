// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace neurontrace {

// For tests: what chronyd answers, as bytes.
struct ChronyReply {
  uint16_t stratum = 3;
  uint16_t leap_status = 0;
  uint32_t reference_s = 1'700'000'000;
  uint32_t reference_ns = 250'000'000;
  double correction_s = -12e-6;
  double root_delay_s = 200e-6;
  double root_dispersion_s = 35e-6;

  std::string Encode(uint32_t sequence) const {
    std::string packet;
    packet += {6, 2, 0, 0};
    Put16(packet, 33);       // command
    Put16(packet, 5);        // reply
    packet.append(8, '\0');  // status, padding
    Put32(packet, sequence);
    packet.append(8, '\0');
    Put32(packet, 0xa9fea97b);  // reference id
    packet.append(20, '\0');    // address
    Put16(packet, stratum);
    Put16(packet, leap_status);
    Put32(packet, 0);
    Put32(packet, reference_s);
    Put32(packet, reference_ns);
    PutFloat(packet, correction_s);
    for (int i = 0; i < 5; ++i) PutFloat(packet, 1.5);  // offsets, frequencies, skew
    PutFloat(packet, root_delay_s);
    PutFloat(packet, root_dispersion_s);
    PutFloat(packet, 16.25);  // update interval
    return packet;
  }

 private:
  static void Put16(std::string& packet, uint16_t value) {
    packet += static_cast<char>(value >> 8);
    packet += static_cast<char>(value);
  }
  static void Put32(std::string& packet, uint32_t value) {
    Put16(packet, static_cast<uint16_t>(value >> 16));
    Put16(packet, static_cast<uint16_t>(value));
  }
  // Coefficient times 2 to the exponent minus 25; the coefficient has 25 bits with its sign.
  static void PutFloat(std::string& packet, double value) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    const auto coefficient = static_cast<int32_t>(std::lround(std::ldexp(fraction, 24)));
    Put32(packet, (static_cast<uint32_t>(exponent + 1) << 25) |
                      (static_cast<uint32_t>(coefficient) & 0x1ffffff));
  }
};

}  // namespace neurontrace
