// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_pair_bound.h"

#include <algorithm>
#include <span>

#include "aggregator/align/causal_solver.h"
#include "aggregator/align/causal_system.h"
#include "base/status.h"

namespace neurontrace {
namespace {

std::vector<bool> TakenAround(const CausalInstances& instances, const CausalParameters& parameters,
                              const CausalResult& result, const CausalGrid& grid) {
  std::vector<bool> taken(instances.size(), false);
  const uint64_t end = grid.KnotNs(grid.epochs);
  for (size_t i = 0; i < instances.size(); ++i) {
    const CausalInstances::Entry& entry = instances[i];
    const size_t kind = Index(entry.instance.kind);
    if (parameters.modes[kind] != CausalMode::kApply) continue;
    if (result.report.classes[kind].distrusted) continue;
    if (i < result.rejected.size() && result.rejected[i]) continue;
    const auto inside = [&](const CausalStamp& stamp) {
      return stamp.reference_ns >= grid.begin_ns && stamp.reference_ns <= end;
    };
    taken[i] = std::ranges::all_of(instances.Causes(entry), inside) &&
               std::ranges::all_of(instances.Effects(entry), inside);
  }
  return taken;
}

}  // namespace

absl::StatusOr<std::vector<CausalPairBound>> CausalPairBounds(
    const std::vector<CausalClock>& clocks, const CausalInstances& instances,
    const CausalParameters& parameters, const CausalResult& result, const CausalMoment& moment) {
  RETURN_IF_ERROR(ValidateCausalPass(clocks, instances, parameters));
  if (moment.clock >= clocks.size()) {
    return InvalidArgument("causal pair bounds: there is no clock {}", moment.clock);
  }
  const uint64_t epoch_ns =
      result.corrections.empty() ? parameters.epoch_ns : result.corrections.grid().epoch_ns;
  // The moment is a knot, so that nothing is added for the way to one.
  const uint64_t back = std::min(kCausalPairEpochs, moment.reference_ns / epoch_ns);
  const CausalGrid grid{.begin_ns = moment.reference_ns - back * epoch_ns,
                        .epoch_ns = epoch_ns,
                        .epochs = static_cast<size_t>(back + kCausalPairEpochs)};
  const auto at = static_cast<size_t>(back);
  CausalLimits limits =
      LimitsOf(clocks, grid, parameters.wander_ppb_per_s, parameters.rate_max_ppb).hard;
  const CausalSelection selection{TakenAround(instances, parameters, result, grid), {}};
  const CausalSystem system(instances, selection, limits, grid, CausalPurpose::kBounds);
  // Errors against that of `clock` at the moment, which differs from none by more than both bounds.
  const int64_t own = limits.Bound(at, moment.clock);
  for (size_t knot = 0; knot < grid.knots(); ++knot) {
    for (size_t clock = 0; clock < clocks.size(); ++clock) limits.Bound(knot, clock) += own;
  }
  limits.Bound(at, moment.clock) = 0;
  CausalSolver solver(system, limits);
  if (!solver.Solve().empty()) {
    return InvalidArgument("causal pair bounds: the result is not of these constraints");
  }
  const int64_t own_shift = result.corrections.ShiftAt(moment.clock, moment.reference_ns);
  std::vector<CausalPairBound> bounds;
  for (size_t clock = 0; clock < clocks.size(); ++clock) {
    const int64_t shift = result.corrections.ShiftAt(clock, moment.reference_ns) - own_shift;
    bounds.push_back({solver.Low(at, clock) - shift, solver.High(at, clock) - shift});
  }
  return bounds;
}

}  // namespace neurontrace
