// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "validate/trace_finding.h"
#include "validate/trace_report.h"

namespace neurontrace {

// The arrows of a trace: an id is drawn from each point that has it to the next in time, until one
// ends it. Perfetto sorts events by time before it follows their flows, so that points are held
// until the end of the file. One thread at a time.
class FlowPoints {
 public:
  FlowPoints(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  // In the order in which those of one event count.
  enum class Kind : uint8_t {
    kBoundIn,  // a LegacyEvent's bind_id with direction in: ends here, and may end elsewhere, too
    kStep,     // begins or continues
    kTerminating,
  };

  void Take(uint64_t id, uint64_t time_ns, Kind kind);
  void Finish();

 private:
  struct Point {
    uint64_t id = 0;
    uint64_t time_ns = 0;
    uint64_t packet = 0;  // orders those of one time
    uint64_t offset_and_kind = 0;
  };
  // Follows the points of one id.
  void Follow(const Point* begin, const Point* end);

  TraceFindingLog& log_;
  TraceSummary& summary_;
  std::vector<Point> points_;
};

}  // namespace neurontrace
