// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_pass.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "aggregator/align/causal_constraint.h"
#include "aggregator/align/causal_estimator.h"
#include "aggregator/align/causal_violation.h"
#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

bool IsBeyondBounds(const CausalViolation& violation, const std::vector<CausalClock>& clocks) {
  const auto bound = [&clocks](const CausalStamp& stamp) {
    return static_cast<unsigned __int128>(BoundAt(clocks[stamp.clock].knots, stamp.reference_ns)) +
           stamp.bound_ns;
  };
  return static_cast<unsigned __int128>(violation.amount_ns) >
         bound(violation.cause) + bound(violation.effect);
}

void CountBefore(const std::vector<CausalClock>& clocks, const CausalInstances& instances,
                 CausalReport& report) {
  const CausalCorrections none;
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    CausalClassReport& kind = report[entry.instance.kind];
    if (kind.mode == CausalMode::kOff) continue;
    ++kind.instances;
    kind.stamps += entry.causes + entry.effects;
    const auto violation = ViolationOf(instances, entry, none);
    if (!violation) continue;
    ++kind.violated_before;
    kind.worst_before_ns = std::max(kind.worst_before_ns, violation->amount_ns);
    if (IsBeyondBounds(*violation, clocks)) ++kind.beyond_bounds;
  }
}

void CountAfter(const CausalInstances& instances, const CausalResult& result,
                CausalReport& report) {
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    CausalClassReport& kind = report[entry.instance.kind];
    if (kind.mode == CausalMode::kOff) continue;
    const bool counts = kind.mode == CausalMode::kCheck || kind.distrusted ||
                        result.rejected.empty() || !result.rejected[i];
    if (!counts) continue;
    const auto violation = ViolationOf(instances, entry, result.corrections);
    if (!violation) continue;
    ++kind.violated_after;
    kind.worst_after_ns = std::max(kind.worst_after_ns, violation->amount_ns);
  }
}

// Instances that say something about two clocks, of the classes that may move any.
std::vector<bool> Taken(const CausalInstances& instances, const CausalReport& report) {
  std::vector<bool> taken(instances.size(), false);
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    const CausalClassReport& kind = report[entry.instance.kind];
    if (kind.mode != CausalMode::kApply || kind.distrusted) continue;
    const uint32_t first = instances.Causes(entry).front().clock;
    const auto differs = [first](const CausalStamp& stamp) { return stamp.clock != first; };
    taken[i] = std::ranges::any_of(instances.Causes(entry), differs) ||
               std::ranges::any_of(instances.Effects(entry), differs);
  }
  return taken;
}

std::optional<CausalGrid> GridOf(const CausalInstances& instances, const std::vector<bool>& taken,
                                 size_t clocks, uint64_t epoch_ns) {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (!taken[i]) continue;
    for (const auto stamps : {instances.Causes(instances[i]), instances.Effects(instances[i])}) {
      for (const CausalStamp& stamp : stamps) {
        first = std::min(first, stamp.reference_ns);
        last = std::max(last, stamp.reference_ns);
      }
    }
  }
  if (first > last) return std::nullopt;
  const uint64_t epochs_max = std::max<uint64_t>(1, limits::kCausalVariablesMax / clocks - 2);
  epoch_ns = std::clamp<uint64_t>(epoch_ns, (last - first) / epochs_max + 1, kCausalTimeMaxNs);
  const uint64_t begin = first / epoch_ns * epoch_ns;
  return CausalGrid{.begin_ns = begin,
                    .epoch_ns = epoch_ns,
                    .epochs = static_cast<size_t>((last - begin) / epoch_ns + 1)};
}

void ReportLargestShift(const std::vector<CausalClock>& clocks,
                        const CausalCorrections& corrections, CausalReport& report) {
  for (size_t knot = 0; knot < corrections.grid().knots(); ++knot) {
    for (size_t clock = 0; clock < clocks.size(); ++clock) {
      const int64_t shift = corrections.At(knot, clock).shift_ns;
      const auto amount = static_cast<uint64_t>(shift < 0 ? -shift : shift);
      if (amount <= report.largest_shift_ns) continue;
      report.largest_shift_ns = amount;
      report.largest_shift_clock = clocks[clock].name;
    }
  }
}

// Each time that a class turns out not to be what it was taken for, all begins again without it:
// what it has driven out may come back.
void Apply(const std::vector<CausalClock>& clocks, const CausalInstances& instances,
           const CausalParameters& parameters, CausalResult& result) {
  CausalReport& report = result.report;
  for (size_t attempt = 0; attempt <= kCausalClassCount; ++attempt) {
    const std::vector<bool> taken = Taken(instances, report);
    const std::optional<CausalGrid> grid =
        GridOf(instances, taken, clocks.size(), parameters.epoch_ns);
    if (!grid) return;
    report.epoch_ns = grid->epoch_ns;
    report.epochs = grid->epochs;
    const CausalLimitsPair limits =
        LimitsOf(clocks, *grid, parameters.wander_ppb_per_s, parameters.rate_max_ppb);
    CausalEstimator estimator(clocks, instances, *grid, limits);
    result.corrections = estimator.Run(taken, report);
    if (!result.corrections.empty()) {
      result.rejected = estimator.Rejected(taken);
      ReportLargestShift(clocks, result.corrections, report);
      return;
    }
    for (CausalClassReport& kind : report.classes) kind.rejected = 0;
    report.findings.clear();
    report.findings_omitted = 0;
  }
}

void ReportDistrusted(CausalReport& report) {
  for (size_t i = 0; i < kCausalClassCount; ++i) {
    const CausalClassReport& kind = report.classes[i];
    if (!kind.distrusted) continue;
    CausalFinding finding{.kind = static_cast<CausalClass>(i)};
    finding.words = fmt::format(
        "{} constraints move nothing: too many contradict the bounds of the clocks or each other. "
        "Either they are not what they are taken for, or bounds are wrong",
        CausalClassName(finding.kind));
    report.findings.insert(report.findings.begin(), std::move(finding));
  }
}

}  // namespace

absl::Status ValidateCausalPass(const std::vector<CausalClock>& clocks,
                                const CausalInstances& instances,
                                const CausalParameters& parameters) {
  if (parameters.epoch_ns == 0) return InvalidArgument("causal pass: an epoch of no length");
  if (clocks.size() > limits::kCausalVariablesMax / 2) {
    return InvalidArgument("causal pass: {} clocks are more than {}", clocks.size(),
                           limits::kCausalVariablesMax / 2);
  }
  for (const CausalClock& clock : clocks) {
    if (clock.knots.empty()) return InvalidArgument("causal pass: {} has no knot", clock.name);
    for (size_t i = 0; i < clock.knots.size(); ++i) {
      const ClockKnot& knot = clock.knots[i];
      const bool ascends =
          i == 0 || (knot.x_ns > clock.knots[i - 1].x_ns && knot.y_ns > clock.knots[i - 1].y_ns);
      if (!ascends || knot.y_ns > kCausalTimeMaxNs) {
        return InvalidArgument("causal pass: {}: knot {} does not ascend, or is no time",
                               clock.name, i);
      }
    }
  }
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    for (const auto stamps : {instances.Causes(entry), instances.Effects(entry)}) {
      for (const CausalStamp& stamp : stamps) {
        if (stamp.clock < clocks.size()) continue;
        return InvalidArgument("causal pass: instance {}: there is no clock {}", i, stamp.clock);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CausalResult> RunCausalPass(const std::vector<CausalClock>& clocks,
                                           const CausalInstances& instances,
                                           const CausalParameters& parameters) {
  RETURN_IF_ERROR(ValidateCausalPass(clocks, instances, parameters));
  CausalResult result;
  for (size_t i = 0; i < kCausalClassCount; ++i) {
    result.report.classes[i].mode = parameters.modes[i];
  }
  CountBefore(clocks, instances, result.report);
  Apply(clocks, instances, parameters, result);
  ReportDistrusted(result.report);
  CountAfter(instances, result, result.report);
  return result;
}

}  // namespace neurontrace
