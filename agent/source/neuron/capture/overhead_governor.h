// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "agent/source/neuron/capture/fidelity_levels.h"

namespace neurontrace {

// What a worker may cost; 0: as much as it does.
struct OverheadBudget {
  uint32_t core_ppm = 0;  // of one processor, tap and agent together
  uint64_t bytes_per_second = 0;
  bool any() const { return core_ppm > 0 || bytes_per_second > 0; }
};

// What it has cost since some beginning.
struct OverheadTotals {
  uint64_t core_ns = 0;
  uint64_t bytes = 0;
};

struct OverheadCost {
  double core_ppm = 0;
  double bytes_per_second = 0;
};

// Decides how much of what a capture asks for is recorded of one worker, so that it costs no more
// than its budget. Knows steps from 0 (all) to the poorest and nothing of what they leave out.
//
// A step poorer at once when the last second cost more than the budget. A step richer when, for
// kCalmNs, what that step is believed to cost was below kRicherShare of the budget: what the richer
// one cost in proportion to this one when it was left, believed the less the longer ago that was.
// A richer step that is left again within kSoonNs was a mistake: after each in a row the pause
// before the next try, and the time for which the proportion is believed, double. So under a load
// that does not change the tries become rare, and between two there are always kPauseMinNs.
//
// Pure: time is passed in, monotonic ns. A plain value.
class OverheadGovernor {
 public:
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kCalmNs = 5'000'000'000;
  static constexpr double kRicherShare = 0.6;
  static constexpr uint64_t kPauseMinNs = 5'000'000'000;
  static constexpr uint64_t kPauseMaxNs = 128 * kPauseMinNs;
  static constexpr uint64_t kSoonNs = 60'000'000'000;
  static constexpr uint64_t kHalfBelievedNs =
      60'000'000'000;  // after the first mistake, twice that
  // No class of events is more than so many times the rest: what looks like it was a load that
  // ended.
  static constexpr double kProportionMax = 10;

  // `steps` > 0, at most kFidelityLevels.
  OverheadGovernor(const OverheadBudget& budget, uint32_t steps);

  // The step that was decided is in effect from now on: what was measured before is forgotten.
  // Nothing is decided before, nor after a decision until it is called again.
  void Begin(uint64_t now_ns, const OverheadTotals& totals);

  struct Decision {
    uint32_t step = 0;
    bool poorer = false;
    bool for_bytes = false;  // over the budget of bytes, and not of the processor
    OverheadCost cost;       // that led to it
  };
  // A few times a second. Totals that go back count as no cost.
  std::optional<Decision> Observe(uint64_t now_ns, const OverheadTotals& totals);

  uint32_t step() const { return step_; }
  const OverheadBudget& budget() const { return budget_; }
  // Of the last second, as of the last Observe; nothing while too little is measured.
  const std::optional<OverheadCost>& cost() const { return cost_; }
  uint64_t pause_ns() const { return pause_ns_; }

 private:
  struct Sample {
    uint64_t at_ns = 0;
    OverheadTotals totals;
  };
  struct Proportion {  // of the cost of the step before to this one's
    double core = 1;
    double bytes = 1;
    uint64_t at_ns = 0;
  };

  void Measure(uint64_t now_ns, const OverheadTotals& totals);
  void Learn(uint64_t now_ns);
  bool CoreIsOver(double share, double core_ppm) const;
  bool BytesAreOver(double share, double bytes_per_second) const;
  bool RicherFits(uint64_t now_ns) const;
  Decision GoPoorer(uint64_t now_ns);
  Decision GoRicher(uint64_t now_ns);

  OverheadBudget budget_;
  uint32_t steps_;
  uint32_t step_ = 0;
  bool begun_ = false;
  std::deque<Sample> window_;
  std::optional<OverheadCost> cost_;
  std::array<Proportion, kFidelityLevels> proportions_;  // by the poorer step
  std::optional<OverheadCost> cost_before_;              // of the richer step that was just left
  std::optional<uint64_t> calm_since_ns_;
  std::optional<uint64_t> richer_at_ns_;  // the last time, while it is not known to be a mistake
  uint64_t next_richer_ns_ = 0;
  uint64_t pause_ns_ = kPauseMinNs;
};

}  // namespace neurontrace
