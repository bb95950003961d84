// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/clock_prober.h"

#include <spdlog/spdlog.h>

namespace neurontrace {

ClockProber::ClockProber(ProbeMode mode, UdpProber& udp, StreamProber& stream, Random& random)
    : mode_(mode), udp_(udp), stream_(stream), schedule_(random.Next64()) {}

void ClockProber::OnWelcome(const std::optional<ProbeAccess>& access) {
  if (mode_ == ProbeMode::kOff) return;
  // Questions to an earlier aggregator are dropped, as their answers may be of another timescale.
  OnLost();
  welcomed_ = true;
  use_stream_ = mode_ == ProbeMode::kGrpc;
  if (mode_ != ProbeMode::kGrpc) {
    const absl::Status status =
        access ? udp_.Connect(*access)
               : absl::UnavailableError("the aggregator does not answer probes over UDP");
    if (!status.ok()) {
      spdlog::info("clock: {}", status.ToString());
      use_stream_ = mode_ == ProbeMode::kAuto;
    }
  }
  // UDP gets its whole patience from here.
  answered_tick_ = ticks_;
  schedule_.StartFastProbing();
}

void ClockProber::OnLost() {
  welcomed_ = false;
  udp_.Disconnect();
  stream_.Disconnect();
}

// Changes between UDP and gRPC by whether UDP has been answered since the last beat.
void ClockProber::Choose() {
  if (mode_ != ProbeMode::kAuto || !udp_.connected()) return;
  if (udp_.counters().answered != answered_) {
    answered_ = udp_.counters().answered;
    answered_tick_ = ticks_;
    if (use_stream_) {
      spdlog::info("clock: probes over UDP are answered");
      use_stream_ = false;
      stream_.Disconnect();
    }
  } else if (!use_stream_ && ticks_ - answered_tick_ > kUnansweredTicksMax) {
    spdlog::info("clock: probes over UDP get no answer; sending them in a gRPC call");
    use_stream_ = true;
    schedule_.StartFastProbing();
  }
}

void ClockProber::OnTick() {
  ++ticks_;
  if (!welcomed_) return;
  Choose();
  const int probes = schedule_.OnTick();
  if (probes == 0) return;
  if (!use_stream_) return udp_.Send(probes);
  stream_.Send(probes);
  // One burst goes over UDP as well, so that Choose can notice that the network lets it through
  // now.
  if (udp_.connected() && ticks_ % kRetryTicks < ProbeSchedule::kTicksPerBurst) udp_.Send(probes);
}

}  // namespace neurontrace
