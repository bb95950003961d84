// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "aggregator/insight/insight_event.h"
#include "aggregator/insight/insight_rule.h"

namespace neurontrace {

// One execution of one core: from the end of its previous device run to the end of this one.
// Durations are nanoseconds of the host's clock and add up to its length; `io` and `memory` are
// parts of the gap. A plain value.
struct CoreExecution {
  uint64_t exec_id = 0;
  uint64_t end_ns = 0;
  uint32_t model = 0;  // FoldModel of the event's; 0: unknown
  uint32_t collectives = 0;
  float submit = 0;
  float pre = 0;
  float device = 0;
  float met = 0;  // in collectives and barriers: wait and transfer
  float post = 0;
  float gap = 0;
  float io = 0;
  float memory = 0;

  float host() const { return submit + pre + post + gap; }
  float own() const { return device + host(); }
  float length() const { return own() + met; }
  // Adds a later execution, so that this stands for a step that ends with it.
  void AddPart(const CoreExecution& part) {
    exec_id = part.exec_id;
    end_ns = part.end_ns;
    model = part.model;
    collectives += part.collectives;
    submit += part.submit;
    pre += part.pre;
    device += part.device;
    met += part.met;
    post += part.post;
    gap += part.gap;
    io += part.io;
    memory += part.memory;
  }
  // What stands for the model where it is unknown.
  uint32_t key() const { return model != 0 ? model : collectives; }
};

// What is known about one operation of one core over its executions. A plain value.
struct CoreOperation {
  uint32_t op = 0;
  uint32_t model = 0;
  InsightClass kind = InsightClass::kCollective;
  uint8_t group = 0;         // index into CoreHistory::groups
  float mean = 0;            // ns, recent executions count most
  float current_least = 0;   // of the block that fills
  float previous_least = 0;  // of the last full block
  float earlier_least = 0;   // of the blocks before it; 0: none
  uint32_t total = 0;
  uint64_t last_exec_id = 0;

  void Add(float length_ns);
  // Of the block that fills, or of the last full one if that has too few executions.
  double recent_least() const;
};

// A span without a stop so far. A plain value.
struct OpenSpan {
  InsightClass kind = InsightClass::kExecute;
  uint8_t group = 0;
  bool is_used = false;
  uint64_t start_ns = 0;
  uint64_t seen_ns = 0;  // the stream is known to reach here
  uint64_t exec_id = 0;
  uint64_t op_id = 0;
};

// Everything that is kept of one core, in a bounded size. Written by SegmentFinder, read by judges.
struct CoreHistory {
  std::array<CoreExecution, insight_rule::kExecutionsKept> ring = {};
  uint64_t executions = 0;    // ever
  uint64_t window_begin = 0;  // `executions` when the window began
  uint64_t new_begin = 0;     // `executions` when the window was last judged and continued
  uint64_t new_since_ns = 0;  // end of the last execution before that; 0: none
  uint64_t id_disorder = 0;   // new executions whose exec_id did not increase
  uint64_t without_id = 0;    // new executions without an exec_id

  std::vector<CoreOperation> operations;  // at most kOperationsKept; most cores have a few
  uint64_t operations_dropped = 0;        // events of operations beyond the limit

  std::array<uint64_t, insight_rule::kGroupsKept> groups = {};
  uint32_t group_count = 0;
  uint64_t groups_dropped = 0;

  std::array<OpenSpan, insight_rule::kOpenKept> open = {};
  uint64_t open_dropped = 0;
  // Lengths in collectives and barriers, by power of two: up to 250 ms, 500 ms, 1 s …
  std::array<uint32_t, 8> met_lengths = {};
  uint64_t last_event_ns = 0;  // end of the latest event
  uint64_t last_error_ns = 0;  // 0: none

  size_t kept() const { return std::min<uint64_t>(executions, ring.size()); }
  // Those of the current window that are kept.
  size_t in_window() const { return std::min<uint64_t>(executions - window_begin, ring.size()); }
  // Those of the current window that no earlier judgement had.
  uint64_t new_executions() const { return executions - new_begin; }
  // The execution before the latest `back` ones. Requires back < kept().
  const CoreExecution& latest(size_t back) const {
    return ring[(executions - 1 - back) % ring.size()];
  }
};

// 32 bits of a model's hash; never 0 for a known model.
constexpr uint32_t FoldModel(uint64_t model) {
  if (model == 0) return 0;
  const auto folded = static_cast<uint32_t>(model ^ model >> 32);
  return folded == 0 ? 1 : folded;
}

constexpr bool IsMeeting(InsightClass kind) {
  return kind == InsightClass::kCollective || kind == InsightClass::kDeviceBarrier ||
         kind == InsightClass::kHostBarrier;
}

}  // namespace neurontrace
