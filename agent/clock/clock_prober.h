// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "agent/clock/probe_access.h"
#include "agent/clock/probe_schedule.h"
#include "agent/clock/stream_prober.h"
#include "agent/clock/udp_prober.h"
#include "base/random.h"

namespace neurontrace {

// How an agent asks its aggregator for the time.
enum class ProbeMode : uint8_t {
  kAuto,  // over UDP, and in a gRPC call for as long as that gets no answers
  kUdp,
  kGrpc,
  kOff
};

// Decides when and how the aggregator is probed. Lives on one sequence, on which Beat is called
// every 50 ms; the probers outlive it.
class ClockProber {
 public:
  // Without a UDP answer for so long, although there were questions, the other way is taken; UDP is
  // tried again every kRetryBeats.
  static constexpr int kUnansweredBeatsMax = 30;
  static constexpr int kRetryBeats = 600;

  ClockProber(ProbeMode mode, UdpProber& udp, StreamProber& stream, Random& random);

  // An aggregator is there. Without access there is no UDP to be had from it.
  void OnWelcome(const std::optional<ProbeAccess>& access);
  void OnLost();
  void OnBreak() { schedule_.Rush(); }
  void Beat();

  // True while answers are sought in a gRPC call.
  bool uses_stream() const { return welcomed_ && use_stream_; }

 private:
  void Choose();

  const ProbeMode mode_;
  UdpProber& udp_;
  StreamProber& stream_;
  ProbeSchedule schedule_;
  bool welcomed_ = false;
  bool use_stream_ = false;
  uint64_t beats_ = 0;
  uint64_t answered_ = 0;       // by UDP, when last looked
  uint64_t answered_beat_ = 0;  // when it last was
};

}  // namespace neurontrace
