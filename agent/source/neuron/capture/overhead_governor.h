// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

#include "agent/source/neuron/capture/fidelity_levels.h"

namespace neurontrace {

// What a worker may cost; 0: no limit.
struct OverheadBudget {
  // Millionths of one processor, for tap and agent together.
  uint32_t core_ppm = 0;
  // Encoded bytes of chunks.
  uint64_t bytes_per_second = 0;
  bool any() const { return core_ppm > 0 || bytes_per_second > 0; }
};

// What it has cost since some beginning.
struct OverheadTotals {
  uint64_t core_ns = 0;
  uint64_t bytes = 0;
};

// A rate of cost: millionths of one processor, and bytes of chunks per second.
struct OverheadCost {
  double core_ppm = 0;
  double bytes_per_second = 0;
};

// Decides how much of what a capture selects is recorded of one worker, so that it costs no more
// than its budget. Knows steps from 0 (everything) to the poorest, and nothing about what they
// omit.
//
// It goes one step poorer at once when the last second cost more than the budget. It goes one step
// richer when, for kCalmNs, the expected cost of that step was below kRaiseFidelityShare of the
// budget. The expectation is the ratio of the costs of both steps when the richer one was left, and
// is trusted less the longer ago that was. A richer step that is left again within kSoonNs was a
// mistake: each in a row doubles the pause before the next attempt, and the time for which the
// ratio is trusted. So attempts become rare under constant load, and are always at least
// kPauseMinNs apart.
//
// docs/decisions/0020-an-overhead-budget-leaves-out-event-classes.md has the reasons. Pure: time is
// passed in, in monotonic ns. A plain value.
class OverheadGovernor {
 public:
  // The time over which a cost is measured.
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kCalmNs = 5'000'000'000;
  static constexpr double kRaiseFidelityShare = 0.6;
  static constexpr uint64_t kPauseMinNs = 5'000'000'000;
  static constexpr uint64_t kPauseMaxNs = 128 * kPauseMinNs;
  static constexpr uint64_t kSoonNs = 60'000'000'000;
  static constexpr uint64_t kHalfBelievedNs =
      60'000'000'000;  // after the first mistake, twice that
  // No class of events costs more than this many times the rest; a larger ratio was a load that
  // ended.
  static constexpr double kProportionMax = 10;

  // `steps` is above 0 and at most kFidelityLevels.
  OverheadGovernor(const OverheadBudget& budget, uint32_t steps);

  // Puts the step that was decided in effect: earlier measurements are discarded. Nothing is
  // decided before the first call, nor after a decision until the next one.
  void Begin(uint64_t now_ns, const OverheadTotals& totals);

  struct Decision {
    uint32_t step = 0;
    bool lower_level = false;
    // Over the budget of bytes and not over that of the processor.
    bool for_bytes = false;
    // The cost that led to it.
    OverheadCost cost;
  };
  // Returns a new step, if one is due. To be called a few times a second. Totals that run backwards
  // count as no cost.
  std::optional<Decision> Observe(uint64_t now_ns, const OverheadTotals& totals);

  uint32_t step() const { return step_; }
  const OverheadBudget& budget() const { return budget_; }
  // Returns the cost of the last second as of the last Observe; nothing while too little is
  // measured.
  const std::optional<OverheadCost>& cost() const { return cost_; }
  // Returns the pause before the next richer step, which grows with mistakes.
  uint64_t pause_ns() const { return pause_ns_; }

 private:
  struct Sample {
    uint64_t at_ns = 0;
    OverheadTotals totals;
  };
  // The cost of the richer step divided by that of this one, and when that was measured.
  struct Proportion {
    double core = 1;
    double bytes = 1;
    uint64_t at_ns = 0;
  };

  // Adds a sample, and sets cost_ once a window is complete.
  void Measure(uint64_t now_ns, const OverheadTotals& totals);
  // Sets the proportion of a step that was just entered.
  void Learn(uint64_t now_ns);
  // Return whether a cost exceeds this share of the budget; false without such a budget.
  bool CoreIsOver(double share, double core_ppm) const;
  bool BytesAreOver(double share, double bytes_per_second) const;
  // Returns whether the next richer step is expected to stay below kRaiseFidelityShare of the
  // budget.
  bool CanRaiseFidelity(uint64_t now_ns) const;
  Decision LowerFidelity(uint64_t now_ns);
  Decision RaiseFidelity(uint64_t now_ns);

  OverheadBudget budget_;
  uint32_t steps_;
  uint32_t step_ = 0;
  bool begun_ = false;
  std::deque<Sample> window_;
  std::optional<OverheadCost> cost_;
  std::array<Proportion, kFidelityLevels> proportions_;  // by the poorer step
  std::optional<OverheadCost> cost_before_;              // of the richer step that was just left
  std::optional<uint64_t> calm_since_ns_;
  std::optional<uint64_t> raised_at_ns_;  // the last time, while it is not known to be a mistake
  uint64_t next_raise_ns_ = 0;
  uint64_t pause_ns_ = kPauseMinNs;
};

}  // namespace neurontrace
