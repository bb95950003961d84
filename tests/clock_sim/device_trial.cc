// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/device_trial.h"

#include <cmath>

namespace neurontrace {
namespace {

DeviceScore ScoreDevice(const Device& device, const DeviceMapping& mapping) {
  DeviceScore score;
  for (size_t i = 0; i < device.stamps.size(); ++i) {
    const Mapped& mapped = mapping.mapped[i];
    const double error = std::abs(
        static_cast<double>(static_cast<int64_t>(mapped.reference_ns - device.truth_ns[i])));
    score.error.Add(error);
    score.bound.Add(mapped.bound_ns);
    score.likely_bound.Add(mapped.likely_bound_ns);
    score.covered.Add(error <= mapped.bound_ns);
    score.likely_covered.Add(error <= mapped.likely_bound_ns);
    const size_t execution = device.stamps[i].execution;
    const bool begins = i == 0 || device.stamps[i - 1].execution != execution;
    const bool ends = i + 1 == device.stamps.size() || device.stamps[i + 1].execution != execution;
    const DeviceRecords::Execution& bracket = device.records.executions[execution];
    if (begins) score.brackets.Add(mapped.reference_ns >= bracket.submit_ns);
    if (ends) score.brackets.Add(mapped.reference_ns <= bracket.complete_ns);
    if (i > 0) score.ascends.Add(mapped.reference_ns >= mapping.mapped[i - 1].reference_ns);
  }
  for (const DeviceRecords::Execution& execution : device.records.executions) {
    score.sync_points += execution.sync ? 1 : 0;
  }
  score.fit_ns = mapping.fit_ns;
  return score;
}

}  // namespace

void DeviceScore::Merge(const DeviceScore& other) {
  error.Merge(other.error);
  bound.Merge(other.bound);
  likely_bound.Merge(other.likely_bound);
  covered.Merge(other.covered);
  likely_covered.Merge(other.likely_covered);
  brackets.Merge(other.brackets);
  ascends.Merge(other.ascends);
  sync_points += other.sync_points;
  fit_ns += other.fit_ns;
}

std::vector<DeviceScore> RunDeviceTrial(const DeviceScenario& scenario,
                                        std::span<const DeviceMethod> methods, uint64_t seed) {
  const Device device = PlayDevice(scenario, seed);
  std::vector<DeviceScore> scores;
  for (const DeviceMethod& method : methods) {
    scores.push_back(ScoreDevice(device, method.map(device.records, device.stamps)));
  }
  return scores;
}

}  // namespace neurontrace
