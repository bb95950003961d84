// SPDX-License-Identifier: Apache-2.0
#include "simulate/replay_host.h"

#include <algorithm>

namespace neurontrace {
namespace {

// Raw at the beginning of a run: the instance has been up for an hour.
constexpr uint64_t kRawAtStartNs = 3'600'000'000'000;
// A part of FleetDice that the model does not use.
constexpr uint64_t kProbeDice = 6;
// One way of a probe, and how long the aggregator keeps it: a quiet network within one zone.
constexpr double kDelayMinNs = 25'000;
constexpr double kDelaySpreadNs = 40'000;
constexpr uint64_t kAnswerNs = 2'000;
// Half the bracket of a snapshot.
constexpr uint64_t kBracketNs = 40;
// Half the interval within which an agent locates a step.
constexpr uint64_t kStepNs = 50'000;
// No reading is so close before what was reached: the clock may step exactly there.
constexpr uint64_t kBehindNs = 1'000'000;

}  // namespace

ReplayHost::ReplayHost(uint64_t seed, uint32_t instance, const ReplayReference& reference)
    : reference_(reference), dice_(seed, kProbeDice, instance) {}

void ReplayHost::Reach(uint64_t true_ns, const FleetClock& clock) {
  clock_ = clock;
  true_ns_ = std::max(true_ns_, true_ns);
  if (evidence_true_ns_ == 0) evidence_true_ns_ = clock.start_ns;
}

uint64_t ReplayHost::RawAt(uint64_t true_ns) const {
  if (true_ns <= clock_.start_ns) return kRawAtStartNs;  // so that it never goes back
  const double elapsed_ns = static_cast<double>(true_ns - clock_.start_ns);
  const auto drift_ns = static_cast<int64_t>(elapsed_ns * clock_.drift);
  return kRawAtStartNs + (true_ns - clock_.start_ns) + static_cast<uint64_t>(drift_ns);
}

ClockSnapshot ReplayHost::SnapshotAt(uint64_t true_ns) const {
  const uint64_t raw_ns = RawAt(true_ns);
  return {.raw_begin_ns = raw_ns - kBracketNs,
          .raw_end_ns = raw_ns + kBracketNs,
          .realtime_ns = clock_.HostTime(true_ns),
          .monotonic_ns = raw_ns,
          .boottime_ns = raw_ns};
}

ClockExchange ReplayHost::ExchangeAt(uint64_t true_ns) {
  const auto delay = [this] {
    const double luck = dice_.Unit();
    return static_cast<uint64_t>(kDelayMinNs + kDelaySpreadNs * luck * luck);
  };
  const uint64_t receive_ns = true_ns + delay();
  const uint64_t send_ns = receive_ns + kAnswerNs;
  return {.send_raw_ns = RawAt(true_ns),
          .reference_receive_ns = reference_.At(receive_ns),
          .reference_send_ns = reference_.At(send_ns),
          .receive_raw_ns = RawAt(send_ns + delay()),
          .reference_epoch = reference_.epoch,
          .path = ProbePath::kGrpc};
}

ClockEvidence ReplayHost::TakeEvidence(bool is_last) {
  ClockEvidence evidence;
  if (true_ns_ == 0) return evidence;
  const uint64_t step_ns = clock_.step_true_ns;
  // A step at the very beginning is an offset.
  const bool has_step =
      step_ns != UINT64_MAX && clock_.step_ns != 0 && step_ns > clock_.start_ns + kStepNs;
  const uint64_t until_ns = is_last ? true_ns_ + kEvidenceNs : true_ns_ - kBehindNs;
  for (; evidence_true_ns_ < until_ns; evidence_true_ns_ += kEvidenceNs) {
    // A reading before the step, the step, and a reading after it, all before the next regular one.
    if (has_step && !has_reported_step_ && evidence_true_ns_ + kStepNs >= step_ns) {
      has_reported_step_ = true;
      evidence.snapshots.push_back(SnapshotAt(step_ns - kStepNs));
      evidence.events.push_back({.kind = ClockEventKind::kRealtimeStep,
                                 .raw_begin_ns = RawAt(step_ns - kStepNs),
                                 .raw_end_ns = RawAt(step_ns + kStepNs),
                                 .amount_ns = clock_.step_ns});
      evidence.snapshots.push_back(SnapshotAt(step_ns + kStepNs));
      evidence_true_ns_ = std::max(evidence_true_ns_, step_ns + 2 * kStepNs);
    }
    evidence.snapshots.push_back(SnapshotAt(evidence_true_ns_));
    evidence.exchanges.push_back(ExchangeAt(evidence_true_ns_));
  }
  return evidence;
}

}  // namespace neurontrace
