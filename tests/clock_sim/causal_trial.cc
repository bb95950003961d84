// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/causal_trial.h"

#include <algorithm>
#include <string>

#include "aggregator/align/causal_pair_bound.h"
#include "aggregator/align/causal_pass.h"
#include "aggregator/align/clock_reading.h"
#include "aggregator/align/host_fit.h"
#include "tests/clock_sim/processor_time.h"

namespace neurontrace {
namespace {

constexpr uint64_t kInstantDice = 402;

// All hosts of a run with what became of their clocks.
class CausalRun {
 public:
  CausalRun(const BarrierScenario& scenario, uint64_t seed);
  CausalScore Score();

 private:
  CausalStamp StampOf(uint32_t host, uint64_t raw_ns) const;
  CausalInstances Instances() const;
  void CompareHosts(const std::vector<ClockModel>& models, CausalState& state) const;
  // One host against all others, at some times.
  void CompareJointly(const std::vector<ClockModel>& corrected, const CausalInstances& instances,
                      const CausalParameters& parameters, const CausalResult& result,
                      CausalScore& score) const;
  // Of barriers that `rejected` does not name.
  void CheckOrder(const std::vector<ClockModel>& models, const std::vector<bool>& rejected,
                  CausalState& state) const;

  const BarrierScenario& scenario_;
  const ReferenceClock reference_;
  std::vector<int64_t> instants_;
  std::vector<Host> hosts_;
  std::vector<Barrier> barriers_;
  std::vector<ClockModel> models_;
  std::vector<CausalClock> clocks_;
  std::vector<size_t> first_clock_;  // of each host
};

CausalRun::CausalRun(const BarrierScenario& scenario, uint64_t seed)
    : scenario_(scenario), reference_(MakeReference(scenario.hosts, seed)) {
  const HostScenario& hosts = scenario.hosts;
  Dice dice(seed, kInstantDice);
  for (uint32_t i = 0; i < hosts.instants; ++i) {
    instants_.push_back(static_cast<int64_t>(dice.Unit() * static_cast<double>(hosts.duration_ns)));
  }
  for (uint32_t member = 0; member < hosts.hosts; ++member) {
    hosts_.push_back(PlayHost(PlanHost(hosts, seed, member), reference_,
                              hosts.duration_ns + hosts.after_ns, seed, member));
    models_.push_back(FitHostClock(hosts_.back().records.evidence, HostFitParameters{}));
    first_clock_.push_back(clocks_.size());
    for (CausalClock& clock : CausalClocksOf("host " + std::to_string(member), models_.back())) {
      clocks_.push_back(std::move(clock));
    }
  }
  barriers_ = PlayBarriers(scenario, hosts_, seed);
}

CausalStamp CausalRun::StampOf(uint32_t host, uint64_t raw_ns) const {
  const ClockReading reading = EvaluateClock(models_[host], raw_ns);
  return {.reference_ns = reading.estimate.y_ns,
          .clock = static_cast<uint32_t>(first_clock_[host] + reading.segment)};
}

CausalInstances CausalRun::Instances() const {
  CausalInstances instances;
  for (const Barrier& barrier : barriers_) {
    std::vector<CausalStamp> enters;
    std::vector<CausalStamp> exits;
    for (const Barrier::Member& member : barrier.members) {
      enters.push_back(StampOf(member.host, member.enter_raw_ns));
      exits.push_back(StampOf(member.host, member.exit_raw_ns));
    }
    // What is refused is not constrained, and will show as out of order.
    instances
        .Add({.kind = CausalClass::kBarrier, .group = 1, .sequence = barrier.sequence}, enters,
             exits)
        .IgnoreError();
  }
  return instances;
}

void CausalRun::CompareHosts(const std::vector<ClockModel>& models, CausalState& state) const {
  std::vector<double> errors(hosts_.size());
  std::vector<double> bounds(hosts_.size());
  for (const int64_t instant : instants_) {
    for (size_t host = 0; host < hosts_.size(); ++host) {
      const uint64_t raw_ns = hosts_[host].truth.raw.Read(instant);
      const ClockEstimate estimate = EvaluateClock(models[host], raw_ns).estimate;
      errors[host] =
          static_cast<double>(static_cast<int64_t>(estimate.y_ns - reference_.Read(instant)));
      bounds[host] = static_cast<double>(estimate.bound_ns);
      state.stamps_covered.Add(std::abs(errors[host]) <= bounds[host]);
    }
    for (size_t a = 0; a < hosts_.size(); ++a) {
      for (size_t b = a + 1; b < hosts_.size(); ++b) {
        const double error = std::abs(errors[a] - errors[b]);
        state.pair.Add(error);
        state.bound.Add(bounds[a] + bounds[b]);
        state.pairs_covered.Add(error <= bounds[a] + bounds[b]);
      }
    }
  }
}

void CausalRun::CompareJointly(const std::vector<ClockModel>& corrected,
                               const CausalInstances& instances, const CausalParameters& parameters,
                               const CausalResult& result, CausalScore& score) const {
  constexpr size_t kTimes = 5;
  for (size_t i = 0; i < kTimes; ++i) {
    const int64_t instant = instants_[i * instants_.size() / kTimes];
    std::vector<CausalStamp> stamps;  // as the pass got them
    std::vector<double> errors;
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      const uint64_t raw_ns = hosts_[host].truth.raw.Read(instant);
      const uint64_t shown_ns = EvaluateClock(corrected[host], raw_ns).estimate.y_ns;
      stamps.push_back(StampOf(host, raw_ns));
      errors.push_back(
          static_cast<double>(static_cast<int64_t>(shown_ns - reference_.Read(instant))));
    }
    const uint32_t first = static_cast<uint32_t>(i * hosts_.size() / kTimes);
    const absl::StatusOr<std::vector<CausalPairBound>> bounds = CausalPairBounds(
        clocks_, instances, parameters, result,
        {.clock = stamps[first].clock, .reference_ns = stamps[first].reference_ns});
    if (!bounds.ok()) {
      ++score.runs_refused;
      return;
    }
    for (uint32_t host = 0; host < hosts_.size(); ++host) {
      if (host == first) continue;
      const CausalPairBound& bound = (*bounds)[stamps[host].clock];
      const double needed_ns = errors[first] - errors[host];
      score.joint_bound.Add(static_cast<double>(bound.most_ns - bound.least_ns) / 2);
      score.joint_covered.Add(needed_ns >= static_cast<double>(bound.least_ns) &&
                              needed_ns <= static_cast<double>(bound.most_ns));
    }
  }
}

void CausalRun::CheckOrder(const std::vector<ClockModel>& models, const std::vector<bool>& rejected,
                           CausalState& state) const {
  for (size_t i = 0; i < barriers_.size(); ++i) {
    if (i < rejected.size() && rejected[i]) continue;
    uint64_t last_enter = 0;
    uint64_t first_exit = UINT64_MAX;
    for (const Barrier::Member& member : barriers_[i].members) {
      const ClockModel& model = models[member.host];
      last_enter = std::max(last_enter, EvaluateClock(model, member.enter_raw_ns).estimate.y_ns);
      first_exit = std::min(first_exit, EvaluateClock(model, member.exit_raw_ns).estimate.y_ns);
    }
    state.in_order.Add(last_enter <= first_exit);
    if (last_enter > first_exit) state.worst.Add(static_cast<double>(last_enter - first_exit));
  }
}

CausalScore CausalRun::Score() {
  CausalScore score;
  CausalParameters parameters;
  parameters.modes[Index(CausalClass::kBarrier)] = CausalMode::kApply;
  const CausalInstances instances = Instances();
  const uint64_t begin_ns = ProcessorTimeNs();
  const absl::StatusOr<CausalResult> result = RunCausalPass(clocks_, instances, parameters);
  score.pass_ns = ProcessorTimeNs() - begin_ns;
  score.stamps = instances.stamps();
  if (!result.ok()) {
    score.runs_refused = 1;
    return score;
  }
  for (size_t i = 0; i < barriers_.size(); ++i) {
    const bool rejected = i < result->rejected.size() && result->rejected[i];
    if (barriers_[i].mislabelled) {
      score.mislabelled_rejected.Add(rejected);
    } else {
      score.accepted.Add(!rejected);
    }
  }
  std::vector<ClockModel> corrected;
  for (size_t host = 0; host < hosts_.size(); ++host) {
    corrected.push_back(ApplyCorrections(models_[host], result->corrections, first_clock_[host]));
  }
  CompareHosts(models_, score.before);
  CompareHosts(corrected, score.after);
  CompareJointly(corrected, instances, parameters, *result, score);
  CheckOrder(models_, {}, score.before);
  CheckOrder(corrected, result->rejected, score.after);
  return score;
}

void MergeState(const CausalState& from, CausalState& into) {
  into.pair.Merge(from.pair);
  into.bound.Merge(from.bound);
  into.stamps_covered.Merge(from.stamps_covered);
  into.pairs_covered.Merge(from.pairs_covered);
  into.in_order.Merge(from.in_order);
  into.worst.Merge(from.worst);
}

}  // namespace

void CausalScore::Merge(const CausalScore& other) {
  MergeState(other.before, before);
  MergeState(other.after, after);
  joint_bound.Merge(other.joint_bound);
  joint_covered.Merge(other.joint_covered);
  accepted.Merge(other.accepted);
  mislabelled_rejected.Merge(other.mislabelled_rejected);
  stamps += other.stamps;
  pass_ns += other.pass_ns;
  runs_refused += other.runs_refused;
}

CausalScore RunCausalTrial(const BarrierScenario& scenario, uint64_t seed) {
  return CausalRun(scenario, seed).Score();
}

}  // namespace neurontrace
