// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_event.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/insight_rule.h"

namespace neurontrace {

// Judges a capture of any length. The rule reads the last executions of each core only, so each job
// is judged in consecutive windows: whenever a core of it has completed kWindowExecutions since
// the last window. Each execution is counted in one window; as in a running capture, a window is
// compared together with the executions before it that the rule keeps.
//
// A loss refuses its core in the windows that it touches, and the core's executions before it are
// not compared with those after it. Hangs are found in the last window, when it is known which
// operations never ended. Memory is that of InsightEngine and of ReportMerger, whatever the length.
//
// Used by one thread at a time.
class WindowedJudge {
 public:
  static constexpr uint64_t kWindowExecutions = insight_rule::kWindows.front();

  // `losses` has one entry for each core. All times are those of one clock.
  WindowedJudge(std::vector<InsightCore> cores, std::vector<std::vector<CoreLoss>> losses);
  ~WindowedJudge();
  WindowedJudge(const WindowedJudge&) = delete;
  WindowedJudge& operator=(const WindowedJudge&) = delete;

  // See InsightEngine::NameModel.
  void NameModel(uint64_t model, std::string_view name);
  // Takes the next event. The events of a job come in the order of their ends over all its cores.
  void Take(const InsightEvent& event);
  // Judges the last window, and returns the report about all of them. `conditions` has one entry
  // for each core; their losses are not read. Called once.
  InsightReport Finish(std::span<const CoreCondition> conditions);

  uint64_t windows() const;  // judged so far, over all jobs
  size_t memory_bytes() const;

 private:
  class Job;

  size_t cores_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<std::pair<Job*, uint32_t>> place_of_;  // by core: its job, and its number there
};

}  // namespace neurontrace
