// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/execution_summary.h"

#include <algorithm>

namespace neurontrace {

// A core without any number does not count: it may execute nothing at all.
void ExecutionSummary::Add(const ExecutionGate& gate) {
  if (gate.first()) {
    first_ = std::min(first_.value_or(*gate.first()), *gate.first());
    // An earlier run of the agent saw where a resumed core began.
    if (!gate.resumed()) highest_first_ = std::max(highest_first_.value_or(0), *gate.first());
  }
  if (!gate.newest()) {
    unknown_newest_ = unknown_newest_ || gate.resumed();
    return;
  }
  cores_without_ += !gate.first() && !gate.resumed();
  lowest_newest_ = std::min(lowest_newest_.value_or(*gate.newest()), *gate.newest());
  newest_ = std::max(newest_.value_or(0), *gate.newest());
  all_past_ = all_past_ && gate.past();
}

ExecutionProgress ExecutionSummary::progress() const {
  ExecutionProgress progress{.first = first_.value_or(0),
                             .highest_first = highest_first_.value_or(0),
                             .lowest_newest = unknown_newest_ ? 0 : lowest_newest_.value_or(0),
                             .newest = newest_.value_or(0),
                             .cores_without = cores_without_};
  // The party that stops the capture at its last execution waits for all cores.
  if (bounds_.last > 0 && !all_past_) progress.newest = std::min(progress.newest, bounds_.last);
  return progress;
}

}  // namespace neurontrace
