// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "aggregator/insight/core_history.h"
#include "aggregator/insight/insight_event.h"
#include "aggregator/insight/interval_cover.h"

namespace neurontrace {

// Divides the time of one core into executions and their segments, as the table "Times" of
// docs/decisions/0044 defines. Takes the events of the core in the order of their ends; allocates
// only for an operation that is new. Used by one thread at a time.
class SegmentFinder {
 public:
  void Take(const InsightEvent& event);
  // Begins a window: only later executions are judged.
  void StartWindow();
  // Continues the window after a judgement: only later executions count as new.
  void ContinueWindow();
  // Begins a window after a loss. The executions during which it may have been are not counted.
  void StartWindowAfterLoss();
  const CoreHistory& history() const { return history_; }
  size_t memory_bytes() const {
    return sizeof(*this) + history_.operations.capacity() * sizeof(CoreOperation);
  }

 private:
  struct Interval {
    uint64_t start = 0;
    uint64_t end = 0;
  };
  // The latest calls of one kind.
  struct RecentCalls {
    std::array<Interval, 4> calls = {};
    uint32_t next = 0;
    void Add(uint64_t start, uint64_t end) { calls[next++ % calls.size()] = {start, end}; }
  };
  // A device run, or a call without one, whose execution is not complete: its calls still end.
  struct Pending {
    bool is_used = false;
    uint64_t exec_id = 0;
    uint32_t model = 0;
    uint32_t collectives = 0;
    uint64_t previous_end = 0;  // 0: unknown, so the execution is not counted
    uint64_t start = 0;
    uint64_t end = 0;
    uint64_t met_ns = 0;  // on the device
    uint64_t io_ns = 0;
    uint64_t memory_ns = 0;
  };

  void TakeOpen(const InsightEvent& event);
  void CloseOpen(const InsightEvent& event);
  void TakeRun(const InsightEvent& event);
  void TakeCall(const InsightEvent& event);
  void TakeMeeting(const InsightEvent& event);
  void BeginPending(const InsightEvent& event, uint64_t start_ns);
  void Complete();
  // Divides the time before the run among the host's segments.
  void DivideHostTime(uint64_t begin, uint64_t end, CoreExecution& execution) const;
  void AddOperation(const InsightEvent& event);
  // Returns an index into the groups, or kGroupsKept if there are too many.
  uint8_t GroupIndex(uint64_t group);

  CoreHistory history_;
  Pending pending_;
  RecentCalls executes_;
  RecentCalls prepares_;
  RecentCalls posts_;
  RecentCalls barriers_;
  IntervalCover met_;     // since the last run: collectives and barriers on the device
  IntervalCover io_;      // … tensor reads, writes and copies
  IntervalCover either_;  // … those, or memory
  uint32_t collectives_ = 0;
  uint32_t prepared_model_ = 0;
  uint64_t prepared_exec_id_ = 0;
  uint64_t last_exec_id_ = 0;  // of the latest complete execution
  uint64_t last_end_ = 0;      // of the latest run; 0: none
  bool has_runs_ = false;
  uint32_t next_operation_ = 0;  // where the next event's operation is expected
};

}  // namespace neurontrace
