// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/stream_prober.h"

#include <algorithm>
#include <utility>

#include "lib/trace/clock_evidence.h"

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

}  // namespace neurontrace
