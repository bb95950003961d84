// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/chrony_tracking.h"

#include <algorithm>
#include <cmath>

#include "agent/clock/utc_bound.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Offsets and values of chrony's candm.h. Numbers are big endian; all other bytes of the request
// are zero.
constexpr uint8_t kChronyVersion = 6;
constexpr uint8_t kRequest = 1;
constexpr uint8_t kReply = 2;
constexpr uint16_t kTrackingCommand = 33;
constexpr uint16_t kTrackingReply = 5;
constexpr size_t kRequestCommandAt = 4;
constexpr size_t kRequestSequenceAt = 8;
// Offsets in the reply. Its head is followed by the reference id, address, stratum and so on.
constexpr size_t kReplyCommandAt = 4;
constexpr size_t kReplyKindAt = 6;
constexpr size_t kReplyStatusAt = 8;
constexpr size_t kReplySequenceAt = 16;
constexpr size_t kStratumAt = 52;
constexpr size_t kLeapAt = 54;
constexpr size_t kReferenceTimeAt = 56;
constexpr size_t kCorrectionAt = 68;
constexpr size_t kRootDelayAt = 92;
constexpr size_t kRootDispersionAt = 96;
static_assert(kRootDispersionAt + 8 == kChronyPacketBytes);

// chronyd assumes that the clock's own error grows by 1 ppm unless configured otherwise, which is
// an estimate; 50 ppm is a bound for the oscillators of machines.
constexpr double kOscillatorErrorMax = 50e-6;

// Writes `value` at `at`, big endian. Requires that it fits into the packet.
template <typename T>
void Put(std::string& packet, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    packet[at + i] = static_cast<char>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

// Returns the big-endian number at `at`. Requires that the packet is long enough.
template <typename T>
T Get(std::string_view packet, size_t at) {
  T value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = static_cast<T>((value << 8) | static_cast<uint8_t>(packet[at + i]));
  }
  return value;
}

// Decodes chrony's own floating point format: 7 bits of exponent and 25 bits of coefficient, both
// in two's complement.
double GetFloat(std::string_view packet, size_t at) {
  const auto bits = static_cast<int32_t>(Get<uint32_t>(packet, at));
  const int32_t exponent = bits >> 25;
  const int32_t coefficient = static_cast<int32_t>(static_cast<uint32_t>(bits) << 7) >> 7;
  return std::ldexp(coefficient, exponent - 25);
}

}  // namespace

std::string EncodeTrackingRequest(uint32_t sequence) {
  std::string packet(kChronyPacketBytes, '\0');
  packet[0] = static_cast<char>(kChronyVersion);
  packet[1] = static_cast<char>(kRequest);
  Put(packet, kRequestCommandAt, kTrackingCommand);
  Put(packet, kRequestSequenceAt, sequence);
  return packet;
}

absl::StatusOr<ChronyTracking> DecodeTrackingReply(std::string_view packet, uint32_t sequence) {
  if (packet.size() < kStratumAt || packet[0] != kChronyVersion || packet[1] != kReply ||
      Get<uint16_t>(packet, kReplyCommandAt) != kTrackingCommand ||
      Get<uint32_t>(packet, kReplySequenceAt) != sequence) {
    return InvalidArgument("{} bytes are not a valid chronyd response", packet.size());
  }
  // A refusal may be shorter than an answer, so its status is read before the full length is
  // required.
  if (const auto status = Get<uint16_t>(packet, kReplyStatusAt); status != 0) {
    return Unavailable("chronyd refused the request: status {}", status);
  }
  if (packet.size() < kChronyPacketBytes || Get<uint16_t>(packet, kReplyKindAt) != kTrackingReply) {
    return InvalidArgument("chronyd sent an unexpected response of {} bytes", packet.size());
  }
  ChronyTracking tracking{.stratum = Get<uint16_t>(packet, kStratumAt),
                          .leap_status = Get<uint16_t>(packet, kLeapAt),
                          .correction_s = GetFloat(packet, kCorrectionAt),
                          .root_delay_s = GetFloat(packet, kRootDelayAt),
                          .root_dispersion_s = GetFloat(packet, kRootDispersionAt)};
  const auto seconds_high = Get<uint32_t>(packet, kReferenceTimeAt);
  const auto seconds = Get<uint32_t>(packet, kReferenceTimeAt + 4);
  const auto nanoseconds = Get<uint32_t>(packet, kReferenceTimeAt + 8);
  // The upper half is zero until 2106, and 0x7fffffff if chronyd does not know it.
  if ((seconds_high != 0 && seconds_high != 0x7fffffff) || nanoseconds >= 1'000'000'000) {
    return InvalidArgument("chronyd's reference time is invalid");
  }
  tracking.reference_time_ns = uint64_t{seconds} * 1'000'000'000u + nanoseconds;
  return tracking;
}

std::optional<UtcReading> UtcFromChrony(const ChronyTracking& tracking, const ClockSnapshot& now) {
  if (tracking.leap_status != 0 || tracking.stratum == 0 || tracking.stratum > 15) {
    return std::nullopt;
  }
  if (tracking.root_delay_s < 0 || tracking.root_dispersion_s < 0) return std::nullopt;
  if (tracking.reference_time_ns == 0) return std::nullopt;
  // REALTIME may have been set back since the update; a negative age counts as none.
  const auto age_ns = static_cast<int64_t>(now.realtime_ns - tracking.reference_time_ns);
  const double age_s = std::max(static_cast<double>(age_ns) * 1e-9, 0.0);
  const double bound_s = std::abs(tracking.correction_s) + tracking.root_dispersion_s +
                         tracking.root_delay_s / 2 + kOscillatorErrorMax * age_s;
  return UtcWithin(UtcSource::kChrony, now, bound_s * 1e9);
}

}  // namespace neurontrace
