// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// A time that was judged at once, by the reference clock.
struct JudgedWindow {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// Makes one report of those of consecutive windows of one job.
//
// Verdicts of consecutive windows with one VerdictKey become one. It lasts from the first `since`
// to the last `until`; the total cost is a sum, and so are executions and judged ones of each
// model; the cost of a step is the mean over judged executions. All other figures are those of the
// window with the most executions of a model that have the excess.
//
// A refusal has the time of its windows. Too few executions, or a sequence that does not repeat
// yet, are none if a later window judges the same executions. Used by one thread at a time; the
// cores must outlive it.
class ReportMerger {
 public:
  // Verdicts and refusals that are kept. Further verdicts are counted in a refusal, and further
  // refusals are joined with others that have the same reason.
  static constexpr size_t kVerdictsMax = 1'024;
  static constexpr size_t kRefusalsMax = 256;
  // So many windows without it do not end a verdict: its excess is near a limit.
  static constexpr uint64_t kWindowsBridged = 1;

  explicit ReportMerger(std::span<const InsightCore> cores);

  // Adds the report of the next window. The engine is in the state in which it made the report.
  void Add(const InsightReport& report, const JudgedWindow& window, const InsightEngine& engine);
  // Returns the report about all windows. Called once.
  InsightReport Finish();

  uint64_t windows() const { return windows_; }
  // Verdicts, refusals and provisional refusals that are kept.
  size_t kept() const;

 private:
  struct Merged {
    Verdict verdict;
    uint64_t last_window = 0;
    uint32_t most_executions = 0;  // of one of its windows
    double cost_sum = 0;           // weighted with judged executions
    double step_sum = 0;
    double weight = 0;
    std::map<std::string, VerdictModel> models;  // of all windows, by role
  };
  // Reason, what is missing, and cores.
  using RefusalKey = std::tuple<RefusalReason, std::string, std::vector<uint32_t>>;
  struct Refused {
    Refusal refusal;
    uint64_t last_end_ns = 0;  // of the last window that was added to it
  };
  // A refusal of one core that a later window may make superfluous.
  struct Provisional {
    RefusalReason reason = RefusalReason::kTooShort;
    std::string missing;
    JudgedWindow window;
    uint64_t first_execution = 0;  // of the core, in the window
  };

  void AddVerdict(const Verdict& found, const JudgedWindow& window);
  // Ends the verdicts that have been missing for too many windows.
  void EndVerdicts();
  void EndVerdict(const Merged& merged);
  void AddRefusals(const InsightReport& report, const JudgedWindow& window,
                   const InsightEngine& engine);
  void AddRefusal(const Refusal& refusal, const JudgedWindow& window);
  void AddProvisional(uint32_t core, const Refusal& refusal, const JudgedWindow& window,
                      uint64_t first_execution);
  // Turns the core's provisional refusals into refusals, but those of executions from this one on.
  void ConfirmProvisional(uint32_t core, uint64_t kept_since);

  const std::span<const InsightCore> cores_;
  InsightReport sums_;
  std::map<std::string, Merged> open_;  // by VerdictKey
  std::map<RefusalKey, Refused> refused_;
  std::vector<std::vector<Provisional>> provisional_;  // by core
  std::vector<bool> was_judged_;                       // by core
  uint64_t begin_ns_ = UINT64_MAX;
  uint64_t end_ns_ = 0;
  uint64_t windows_ = 0;
  uint64_t verdicts_dropped_ = 0;
};

}  // namespace neurontrace
