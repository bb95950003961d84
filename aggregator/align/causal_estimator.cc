// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_estimator.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "aggregator/align/causal_violation.h"
#include "base/status.h"
#include "trace/clock_limits.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// A class of which more than so many, and more than one in so many, is rejected is not what it was
// taken for.
constexpr uint64_t kRejectedMin = 10;
constexpr uint64_t kRejectedOneIn = 100;
// Rounds of dropping likely bounds, then of raising margins: few are ever needed.
constexpr size_t kDoubtRoundsMax = 12;
constexpr size_t kTightenRoundsMax = 4;

}  // namespace

CausalEstimator::CausalEstimator(const std::vector<CausalClock>& clocks,
                                 const CausalInstances& instances, const CausalGrid& grid,
                                 const CausalLimitsPair& limits)
    : clocks_(clocks), instances_(instances), grid_(grid), limits_(limits) {}

CausalCorrections CausalEstimator::Run(std::vector<bool> taken, CausalReport& report) {
  selection_.taken = std::move(taken);
  selection_.margin_ns.assign(instances_.size(), 0);
  CausalSystem system(instances_, selection_, limits_.hard, grid_, CausalPurpose::kCurves);
  CausalBeliefs beliefs(limits_, grid_, instances_, selection_.taken);
  CausalCorrections corrections(grid_, clocks_.size());
  for (size_t round = 0; round <= kTightenRoundsMax + 1; ++round) {
    CausalSolver hard(system, limits_.hard);
    if (!SolveHard(hard, system, report)) return {};
    beliefs.DoubtImpossible(hard);
    if (!SolveLikely(system, beliefs, corrections, report)) Shift(hard, corrections);
    if (!TightenViolated(system, corrections, round >= kTightenRoundsMax, report)) break;
  }
  report.unlikely_clocks = beliefs.doubted();
  FillBounds(beliefs, corrections);
  return corrections;
}

std::vector<bool> CausalEstimator::Rejected(const std::vector<bool>& taken) const {
  std::vector<bool> rejected(taken.size());
  for (size_t i = 0; i < taken.size(); ++i) rejected[i] = taken[i] && !selection_.taken[i];
  return rejected;
}

// Until what is taken can be true together. False: a class is distrusted.
bool CausalEstimator::SolveHard(CausalSolver& solver, CausalSystem& system, CausalReport& report) {
  for (size_t round = 1;; ++round) {
    ++report.rounds;
    const std::vector<CausalCycle> cycles = solver.Solve();
    if (cycles.empty()) return true;
    std::vector<uint32_t> rejected;
    for (const CausalCycle& cycle : cycles) {
      if (round < limits::kCausalRoundsMax) {
        RejectOneOf(cycle, rejected, report);
      } else {
        RejectAllAt(cycle, rejected, report);
      }
    }
    if (Distrust(report)) return false;
    for (const uint32_t instance : rejected) system.RebuildOf(instance);
  }
}

// Of equally trusted ones the one whose effect is furthest before its cause.
bool CausalEstimator::RejectOneOf(const CausalCycle& cycle, std::vector<uint32_t>& rejected,
                                  CausalReport& report) {
  std::optional<CausalStep> worst;
  for (const CausalStep& step : cycle.steps) {
    if (step.kind != CausalStep::Kind::kConstraint) continue;
    if (!selection_.taken[step.instance]) return false;  // what this cycle needs is gone already
    const auto key = [this](const CausalStep& of) {
      return std::tuple(instances_[of.instance].instance.kind, of.weight_ns, of.instance);
    };
    if (!worst || key(step) < key(*worst)) worst = step;
  }
  if (!worst) return false;
  Reject(worst->instance, cycle, report);
  rejected.push_back(worst->instance);
  return true;
}

void CausalEstimator::RejectAllAt(const CausalCycle& cycle, std::vector<uint32_t>& rejected,
                                  CausalReport& report) {
  for (const CausalStep& step : cycle.steps) {
    if (step.kind != CausalStep::Kind::kConstraint || !selection_.taken[step.instance]) continue;
    Reject(step.instance, cycle, report);
    rejected.push_back(step.instance);
  }
}

void CausalEstimator::Reject(uint32_t instance, const CausalCycle& cycle, CausalReport& report) {
  selection_.taken[instance] = false;
  const CausalInstances::Entry& entry = instances_[instance];
  ++report[entry.instance.kind].rejected;
  if (report.findings.size() >= limits::kCausalFindingsMax) {
    ++report.findings_omitted;
    return;
  }
  CausalFinding finding{.kind = entry.instance.kind,
                        .reference_ns = instances_.Causes(entry).front().reference_ns,
                        .instance = instance,
                        .cycle = cycle,
                        .words = Describe(instance, cycle)};
  if (finding.cycle.steps.size() > limits::kCausalCycleStepsKeptMax) {
    finding.cycle.steps.resize(limits::kCausalCycleStepsKeptMax);
  }
  report.findings.push_back(std::move(finding));
}

bool CausalEstimator::Distrust(CausalReport& report) const {
  bool any = false;
  for (CausalClassReport& kind : report.classes) {
    if (kind.distrusted || kind.rejected <= kRejectedMin) continue;
    if (kind.rejected * kRejectedOneIn <= kind.instances) continue;
    kind.distrusted = true;
    any = true;
  }
  return any;
}

// False: no estimate was found that all which is still believed allows.
bool CausalEstimator::SolveLikely(CausalSystem& system, CausalBeliefs& beliefs,
                                  CausalCorrections& into, CausalReport& report) {
  for (size_t round = 1; round <= kDoubtRoundsMax; ++round) {
    ++report.rounds;
    const CausalLimits believed = beliefs.ForCurves();
    CausalSolver solver(system, believed);
    const std::vector<CausalCycle> cycles = solver.Solve();
    if (cycles.empty()) {
      Shift(solver, into);
      if (beliefs.Settle(into)) return true;
    } else if (round == kDoubtRoundsMax / 2) {
      beliefs.DoubtAll();
    } else {
      beliefs.DoubtMostBlamed(cycles);
    }
  }
  return false;
}

void CausalEstimator::Shift(const CausalSolver& solver, CausalCorrections& into) const {
  for (size_t knot = 0; knot < grid_.knots(); ++knot) {
    for (size_t clock = 0; clock < clocks_.size(); ++clock) {
      into.At(knot, clock).shift_ns = solver.Middle(knot, clock);
    }
  }
}

bool CausalEstimator::TightenViolated(CausalSystem& system, const CausalCorrections& corrections,
                                      bool give_up, CausalReport& report) {
  std::vector<uint32_t> changed;
  for (uint32_t i = 0; i < instances_.size(); ++i) {
    if (!selection_.taken[i]) continue;
    const std::optional<CausalViolation> violation =
        ViolationOf(instances_, instances_[i], corrections);
    if (!violation) continue;
    changed.push_back(i);
    if (give_up) {
      Reject(i, {.steps = {}, .amount_ns = violation->amount_ns}, report);
    } else {
      selection_.margin_ns[i] += static_cast<uint32_t>(
          std::min<int64_t>(violation->amount_ns + 1, INT32_MAX - selection_.margin_ns[i]));
    }
  }
  for (const uint32_t instance : changed) system.RebuildOf(instance);
  return !changed.empty();
}

void CausalEstimator::FillBounds(const CausalBeliefs& beliefs,
                                 CausalCorrections& corrections) const {
  const CausalSystem system(instances_, selection_, limits_.hard, grid_, CausalPurpose::kBounds);
  const auto fill = [&](const CausalLimits& limits, auto&& into) {
    CausalSolver solver(system, limits);
    // Where shifts had to be found without all that is believed, it may be so: then these bounds
    // are not known.
    if (!solver.Solve().empty()) return;
    const auto away = [&](size_t knot, size_t clock) {
      const int64_t shift = corrections.At(knot, clock).shift_ns;
      return std::max(solver.High(knot, clock) - shift, shift - solver.Low(knot, clock));
    };
    for (size_t epoch = 0; epoch < grid_.epochs; ++epoch) {
      for (size_t clock = 0; clock < clocks_.size(); ++clock) {
        // Between its ends truth may bend away from the line by half of what it can move.
        const int64_t bound = std::max(away(epoch, clock), away(epoch + 1, clock)) +
                              limits.Slope(epoch, clock) / 2 + 1;
        into(corrections.At(epoch, clock)) = static_cast<uint64_t>(std::max<int64_t>(bound, 0));
      }
    }
  };
  fill(limits_.hard, [](CausalEpoch& epoch) -> uint64_t& { return epoch.bound_ns; });
  fill(beliefs.ForBounds(), [](CausalEpoch& epoch) -> uint64_t& { return epoch.likely_bound_ns; });
}

std::string CausalEstimator::Describe(uint32_t instance, const CausalCycle& cycle) const {
  const auto name = [this](uint32_t clock) -> std::string {
    return clock == CausalStep::kReference ? "the reference" : clocks_[clock].name;
  };
  const auto label = [this](uint32_t of) {
    const CausalInstance& what = instances_[of].instance;
    return fmt::format("{} {:x}:{}", CausalClassName(what.kind), what.group, what.sequence);
  };
  std::string words =
      fmt::format("{} is left out: with it clocks would be {} ns ahead of themselves",
                  label(instance), cycle.amount_ns);
  size_t named = 0;
  for (const CausalStep& step : cycle.steps) {
    if (++named > limits::kCausalCycleStepsMax) {
      words += fmt::format("; and {} more", cycle.steps.size() - limits::kCausalCycleStepsMax);
      break;
    }
    const std::string reason = step.kind == CausalStep::Kind::kConstraint ? label(step.instance)
                               : step.kind == CausalStep::Kind::kBound    ? "bound"
                                                                          : "drift";
    words += fmt::format("{} {} is behind {} by at most {} ns ({})", named == 1 ? ":" : ";",
                         name(step.from), name(step.to), step.weight_ns, reason);
  }
  return words;
}

}  // namespace neurontrace
