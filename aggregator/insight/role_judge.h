// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/judge_input.h"
#include "aggregator/insight/peer_table.h"

namespace neurontrace {

// What fills most of a gap's excess.
enum class GapFill : uint8_t { kNothing = 0, kTensorIo, kMemory };

// A core whose own work is more than that of its peers, and what the rule knows about it. Costs and
// excesses are per step. A plain value.
struct SlowCore {
  uint32_t core = 0;
  size_t role = 0;                     // of its fleet
  uint32_t row = 0;                    // in its role's tables
  size_t table = 0;                    // the table in which its excess is largest
  uint32_t window = 0;                 // executions
  Quantity quantity = Quantity::kOwn;  // that the figures refer to
  InsightPhase phase = InsightPhase::kDevice;
  GapFill fill = GapFill::kNothing;
  double ratio = 1;
  double z = 0;
  double spread = 0;
  double excess_ns = 0;  // of its own work, as far as the others wait for it
  uint32_t held = 0;     // executions in which the ratio was exceeded …
  uint32_t judged = 0;   // … of so many
  uint64_t since_ns = 0;
  uint64_t until_ns = 0;
  uint64_t exec_id = 0;  // the latest in which it was exceeded
  // The same core in the tables of other models whose executions pass the test, too.
  std::vector<SlowCore> also;
};

// The frontier: the wait that ends with the named cores, and the lead of somebody else. Per step.
struct Frontier {
  double explained_ns = 0;
  double unexplained_ns = 0;
  uint32_t leader = 0;  // the core whose lead is unexplained
  bool AddsUp() const;
};

// Applies the rule to the cores of one role. Lives for one judgement; `input` and `role` must
// outlive it. Used by one thread at a time.
class RoleJudge {
 public:
  RoleJudge(const JudgeInput& input, const FleetRole& role);

  const FleetRole& role() const { return role_; }
  // One for each model; the last is that of whole steps.
  const PeerTable& table(size_t number) const {
    return number < tables_.size() ? tables_[number] : steps_;
  }
  // False if too few executions are common to the cores.
  bool has_executions() const { return !tables_.empty(); }
  bool has_peers() const;
  double step_ns() const { return role_.step_ns; }
  // The exposed wait per step, in the window in which it costs enough, or else in the largest.
  double wait_ns() const { return wait_ns_; }
  bool costs_enough() const { return costs_enough_; }
  // True if so much time per step is worth a verdict.
  bool IsWorthNaming(double ns_per_step) const;

  // Returns the cores that pass the test, ascending. With `too_many` set, these are half of the
  // cores or more, or leave fewer than three peers, so that nobody knows which of them are slow.
  std::vector<SlowCore> FindSlowCores(bool& too_many) const;
  Frontier FindFrontier(const std::vector<uint32_t>& suspect_rows, uint32_t window) const;
  // Medians per step, by row.
  double OwnPerStep(size_t row) const;
  double MetPerStep(size_t row) const;
  // The share of a step that its cores spend in collectives at all.
  double MetShare() const;
  // How many cores but the suspects wait for at least half of the mean wait.
  uint32_t CountWaiting(const SlowCore& slow, const std::vector<uint32_t>& suspect_rows) const;
  // The deviation, within a step, of log own work that the executions of a core have in common, as
  // the lengths of its sequences make it. Noise of single executions, and what a core always has,
  // do not count. Nothing with one execution in a step, which does not tell. Known if the role has
  // peers and its wait costs enough.
  std::optional<double> CommonSpread() const { return common_spread_; }
  // The largest spread of log own work over the cores of one execution.
  double OwnSpread() const;
  // The model of a table, or what stands for it.
  std::string Name(size_t table) const;

 private:
  struct TableMedians;
  SlowCore Describe(const PeerExcess& excess, size_t table, const TableMedians& medians) const;
  void FindOnset(SlowCore& slow) const;
  // So many executions of the most frequent model, in steps.
  uint32_t StepsIn(uint32_t window) const;
  double WaitIn(uint32_t window, const std::vector<bool>& excluded) const;
  // The same over all executions, as a mean.
  double MeanWait(const std::vector<bool>& excluded) const;
  // Sets the wait, and whether it costs enough.
  void FindCost();
  std::optional<double> FindCommonSpread() const;
  // The z of a candidate, from the number of all comparisons of the capture.
  double LeastZOfRole() const;

  const JudgeInput& input_;
  const FleetRole& role_;
  std::vector<PeerTable> tables_;
  PeerTable steps_;
  double wait_ns_ = 0;
  bool costs_enough_ = false;
  std::optional<double> common_spread_;  // found only where it is needed
};

}  // namespace neurontrace
