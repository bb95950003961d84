// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/execution_summary.h"

#include <algorithm>

namespace neurontrace {

// A core without any number does not count: it may execute nothing at all.
void ExecutionSummary::Add(const ExecutionGate& gate) {
  if (gate.first()) first_ = std::min(first_.value_or(*gate.first()), *gate.first());
  if (!gate.newest()) return;
  newest_ = std::max(newest_.value_or(0), *gate.newest());
  all_past_ = all_past_ && gate.past();
}

ExecutionProgress ExecutionSummary::progress() const {
  ExecutionProgress progress{first_.value_or(0), newest_.value_or(0)};
  // The party that stops the capture at its last execution waits for all cores.
  if (bounds_.last > 0 && !all_past_) progress.newest = std::min(progress.newest, bounds_.last);
  return progress;
}

}  // namespace neurontrace
