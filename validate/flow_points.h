// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "validate/trace_finding.h"
#include "validate/trace_report.h"

namespace neurontrace {

// The arrows of a trace: an id is drawn from each point that has it to the next, until one ends it.
// One thread at a time.
class FlowPoints {
 public:
  FlowPoints(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  void Take(uint64_t id, bool is_terminating);
  void Finish();

 private:
  TraceFindingLog& log_;
  TraceSummary& summary_;
  absl::flat_hash_map<uint64_t, bool> open_;  // by id: whether an arrow has begun to be drawn
};

}  // namespace neurontrace
