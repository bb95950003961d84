// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/clock_prober.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

// An older answer gives an interval too wide to be of use.
constexpr uint64_t kAnswerMaxNs = 1'000'000'000;

}  // namespace

StreamProber::StreamProber(ProbeConnector connector, const HostClocks& clocks, TaskRunner& runner,
                           ExchangeSink& exchanges)
    : connector_(std::move(connector)), clocks_(clocks), runner_(runner), exchanges_(exchanges) {}

StreamProber::~StreamProber() = default;

void StreamProber::Send(int probes) {
  if (probes <= 0) return;
  to_send_ = std::max(to_send_, probes);
  // An answer that does not come holds nothing up for longer than it would be of use.
  if (!answered_ && clocks_.RawNs() - send_raw_ns_ > kAnswerMaxNs) answered_ = true;
  // Questions of a call that has ended stay unanswered, so a new call begins without one.
  if (stream_ == nullptr) {
    ++counters_.calls;
    writing_ = false;
    answered_ = true;
    stream_ = connector_(*this);
  }
  Pump();
}

// The next question waits for the answer to the last one, or until Send gives up on that.
void StreamProber::Pump() {
  if (stream_ == nullptr || writing_ || !answered_ || to_send_ == 0) return;
  --to_send_;
  writing_ = true;
  answered_ = false;
  ++counters_.sent;
  send_raw_ns_ = clocks_.RawNs();
  stream_->Send(++sequence_);
}

void StreamProber::OnWritten() {
  writing_ = false;
  Pump();
}

void StreamProber::OnReply(const ProbeReply& reply) {
  // An exchange whose times contradict each other would give a wrong bound, so it is refused.
  if (answered_ || reply.sequence != sequence_ || reply.receive_raw_ns < send_raw_ns_ ||
      reply.reference_send_ns < reply.reference_receive_ns || reply.reference_epoch == 0) {
    ++counters_.refused;
    return;
  }
  answered_ = true;
  if (reply.receive_raw_ns - send_raw_ns_ <= kAnswerMaxNs) {
    ++counters_.answered;
    exchanges_.AddExchange({.send_raw_ns = send_raw_ns_,
                            .reference_receive_ns = reply.reference_receive_ns,
                            .reference_send_ns = reply.reference_send_ns,
                            .receive_raw_ns = reply.receive_raw_ns,
                            .reference_epoch = reply.reference_epoch,
                            .path = ProbePath::kGrpc});
  }
  Pump();
}

// Destroys the call from a task, as its own callback must not. The next Send starts another one,
// unless one has been started by then.
void StreamProber::OnClosed(const absl::Status&) {
  runner_.PostTask(weak_tasks_.Wrap([this, call = counters_.calls] {
    if (call == counters_.calls) Disconnect();
  }));
}

void StreamProber::Disconnect() {
  stream_.reset();
  to_send_ = 0;
}

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
  answered_beat_ = beats_;
  schedule_.Rush();
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
    answered_beat_ = beats_;
    if (use_stream_) {
      spdlog::info("clock: probes over UDP are answered");
      use_stream_ = false;
      stream_.Disconnect();
    }
  } else if (!use_stream_ && beats_ - answered_beat_ > kUnansweredBeatsMax) {
    spdlog::info("clock: probes over UDP get no answer; sending them in a gRPC call");
    use_stream_ = true;
    schedule_.Rush();
  }
}

void ClockProber::Beat() {
  ++beats_;
  if (!welcomed_) return;
  Choose();
  const int probes = schedule_.Beat();
  if (probes == 0) return;
  if (!use_stream_) return udp_.Send(probes);
  stream_.Send(probes);
  // One burst goes over UDP as well, so that Choose can notice that the network lets it through
  // now.
  if (udp_.connected() && beats_ % kRetryBeats < ProbeSchedule::kBeatsPerBurst) udp_.Send(probes);
}

}  // namespace neurontrace
