// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/insight/insight_event.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// A core whose events come. Texts are kept as they are; callers bound them.
struct InsightCore {
  std::string job;           // groups meet within a job only
  bool has_job_name = true;  // false: `job` stands for workers that name none; see InsightFeed
  std::string instance_id;
  uint64_t process = 0;  // unique among the workers of the instance
  // -1: unknown.
  int64_t worker_gid = -1;
  uint32_t nc_idx = 0;
  uint32_t world_size = 0;  // of the job; 0: unknown
};

// What is known about a core besides its events, at the moment of judging.
struct CoreCondition {
  // Times of the core's own clock. Canary, heartbeat or any event: the stream was alive then. 0:
  // unknown.
  uint64_t alive_at_ns = 0;
  bool has_ended = false;      // its process has ended, at ended_at_ns
  bool ended_orderly = false;  // the runtime was closed first: it waits for nothing
  bool is_silent = false;      // nothing arrives any more, and nobody knows why
  uint64_t ended_at_ns = 0;
  uint64_t lost_events = 0;  // in the window
  bool lost_unknown = false;
  uint64_t loss_begin_ns = 0;
  uint64_t loss_end_ns = 0;
};

// A time in which events of a core were lost, or may have been. A plain value.
struct CoreLoss {
  uint64_t events = 0;
  bool is_unknown = false;  // there may be more
  uint64_t begin_ns = 0;    // by the core's clock; 0 and UINT64_MAX: at any time
  uint64_t end_ns = UINT64_MAX;
};

// Names which cores are slow or hung, in which phase and collective, or refuses, by the rule of
// docs/decisions/0044. Pure: the same events give the same report, in whatever order cores are
// interleaved. Bounded: at most kBytesPerCoreMax for each core, whatever comes; what is beyond a
// limit is counted and refused. Used by one thread at a time.
class InsightEngine {
 public:
  static constexpr size_t kBytesPerCoreMax = 8 * 1024;

  explicit InsightEngine(std::vector<InsightCore> cores);
  ~InsightEngine();
  InsightEngine(const InsightEngine&) = delete;
  InsightEngine& operator=(const InsightEngine&) = delete;

  // Adds a core and returns its index. While a capture runs, workers join.
  uint32_t AddCore(InsightCore core);
  void Take(const InsightEvent& event);
  void Take(std::span<const InsightEvent> events);
  // A hint for texts: what a hash in InsightEvent::model stands for. At most 256 bytes are kept.
  void NameModel(uint64_t model, std::string_view name);

  // Judges what came since the last StartWindow. `conditions` has one entry for each core.
  InsightReport Judge(std::span<const CoreCondition> conditions) const;
  // Begins a new window: verdicts are made of later executions, histories and roles stay.
  void StartWindow();
  // Continues the window after a judgement. The next one compares the same executions and those
  // that come, and counts only those that come (Verdict::judged, InsightReport::executions).
  void ContinueWindow();
  // Begins a new window of one core after a loss, so that nothing is made of what is incomplete.
  void StartWindowAfterLoss(uint32_t core);

  std::span<const InsightCore> cores() const;
  // Returns the executions of a core since the start.
  uint64_t executions(uint32_t core) const;
  // Returns those since the last call of ContinueWindow or the start of the window.
  uint64_t new_executions(uint32_t core) const;
  size_t memory_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace neurontrace
