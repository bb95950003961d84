// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

// Measurements of an agent about the clocks of its host. They are never changed and are kept for
// ever: models are fitted to them (aggregator/align), and can be fitted again by a better method.
//
// The common axis is the host's CLOCK_MONOTONIC_RAW, "raw" below, which nothing slews or steps. All
// times are ns.
namespace neurontrace {

// All clocks of a host, read between two readings of raw.
struct ClockSnapshot {
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  uint64_t boottime_ns = 0;
  // adjtimex(2): how the kernel steers REALTIME and MONOTONIC.
  int64_t frequency = 0;     // timex.freq: ppm * 2^16
  uint32_t tick_us = 0;      // timex.tick
  uint32_t status = 0;       // timex.status, STA_*
  int32_t tai_offset_s = 0;  // timex.tai
  friend bool operator==(const ClockSnapshot&, const ClockSnapshot&) = default;
};

// How a probe travelled. Values are on the wire and in stores: never change one.
enum class ProbePath : uint8_t { kUnspecified = 0, kUdp = 1, kGrpc = 2, kPeer = 3 };

// One probe and its answer. Each stamp may be delayed in the direction that makes the exchange look
// longer (sends too early, receipts too late), never shorter. Therefore both
//   reference_send - receive_raw <= reference - raw <= reference_receive - send_raw
// hold for any transit times (RFC 5905, section 8, uses the same four stamps).
struct ClockExchange {
  uint64_t send_raw_ns = 0;
  uint64_t reference_receive_ns = 0;
  uint64_t reference_send_ns = 0;
  uint64_t receive_raw_ns = 0;
  uint32_t reference_epoch =
      0;  // which incarnation of the reference timescale; numbered by its keeper
  ProbePath path = ProbePath::kUnspecified;
  friend bool operator==(const ClockExchange&, const ClockExchange&) = default;
};

// Values are on the wire and in stores: never change one.
enum class ClockEventKind : uint8_t {
  kUnspecified = 0,
  kRealtimeStep = 1,  // somebody set REALTIME (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET)
  kSuspend = 2,       // BOOTTIME has advanced further than MONOTONIC
  kPause = 3,         // nothing ran for a while: raw may have stood still, or not
  kMigration = 4,    // the hypervisor reports that the counter under raw may have changed (vmclock)
  kClockSource = 5,  // the kernel uses another counter
};

// An event in the life of the host's clocks, between two readings of raw.
struct ClockEvent {
  ClockEventKind kind = ClockEventKind::kUnspecified;
  uint64_t raw_begin_ns = 0;
  uint64_t raw_end_ns = 0;
  int64_t amount_ns = 0;  // kRealtimeStep: by how much REALTIME was advanced; 0: unknown
  friend bool operator==(const ClockEvent&, const ClockEvent&) = default;
};

// Values are on the wire and in stores: never change one.
enum class UtcSource : uint8_t { kUnspecified = 0, kPhc = 1, kClockBound = 2, kChrony = 3 };

// At `raw_ns` UTC was between `utc_earliest_ns` and `utc_latest_ns` since the Unix epoch, without
// smearing of leap seconds, as `source` promises.
struct UtcReading {
  UtcSource source = UtcSource::kUnspecified;
  uint64_t raw_ns = 0;
  uint64_t utc_earliest_ns = 0;
  uint64_t utc_latest_ns = 0;
  friend bool operator==(const UtcReading&, const UtcReading&) = default;
};

// The evidence of one host in one boot; each list in ascending order of raw.
struct ClockEvidence {
  std::vector<ClockSnapshot> snapshots;
  std::vector<ClockExchange> exchanges;
  std::vector<ClockEvent> events;
  std::vector<UtcReading> utc;
};

}  // namespace neurontrace
