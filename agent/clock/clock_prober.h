// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "agent/clock/probe_access.h"
#include "agent/clock/probe_schedule.h"
#include "agent/clock/stream_prober.h"
#include "agent/clock/udp_prober.h"
#include "lib/base/random.h"

namespace neurontrace {

// How an agent probes the time of its aggregator; the option --clock-probes.
enum class ProbeMode : uint8_t {
  // Over UDP, and in a gRPC call for as long as that gets no answers.
  kAuto,
  // Over UDP only, whether answers come or not.
  kUdp,
  // In a gRPC call only.
  kGrpc,
  kOff
};

// Decides when and by which way the aggregator is probed. Lives on one sequence, on which Beat is
// called every 50 ms; the probers outlive it. Nothing fails: without answers the aggregator widens
// its bounds.
class ClockProber {
 public:
  // In kAuto, probes change to gRPC after this many beats without an answer over UDP, although
  // there were questions. UDP is tried again every kRetryTicks and is taken back with its first
  // answer.
  static constexpr int kUnansweredTicksMax = 30;
  static constexpr int kRetryTicks = 600;

  ClockProber(ProbeMode mode, UdpProber& udp, StreamProber& stream, Random& random);

  // Called when an aggregator has accepted this agent. Without `access` it answers no probes over
  // UDP.
  void OnWelcome(const std::optional<ProbeAccess>& access);
  // Called when the aggregator is gone; stops probing until the next OnWelcome.
  void OnLost();
  // Called when the clocks may have changed: older exchanges no longer bound the offset, so new
  // ones are urgent.
  void OnBreak() { schedule_.StartFastProbing(); }
  // Sends what is due.
  void OnTick();

  // Returns true while answers are sought in a gRPC call.
  bool uses_stream() const { return welcomed_ && use_stream_; }

 private:
  // Changes the way if UDP has started or stopped to be answered.
  void Choose();

  const ProbeMode mode_;
  UdpProber& udp_;
  StreamProber& stream_;
  ProbeSchedule schedule_;
  // True between OnWelcome and OnLost; always false in kOff.
  bool welcomed_ = false;
  // True while questions are asked in a gRPC call.
  bool use_stream_ = false;
  uint64_t ticks_ = 0;
  // The number of answers over UDP when Choose last compared it.
  uint64_t answered_ = 0;
  // The beat of the last answer over UDP, or of OnWelcome.
  uint64_t answered_tick_ = 0;
};

}  // namespace neurontrace
