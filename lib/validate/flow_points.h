// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "lib/validate/trace_finding.h"
#include "lib/validate/trace_report.h"

namespace neurontrace {

// The arrows of a trace: an arrow leads from each point of an id to the next in time, until one
// ends the flow. Perfetto sorts events by time before it follows their flows, so points are held
// until the end of the file: 32 bytes each, at most validate_limits::kFlowPointsMax. Used by
// EventCheck; one thread at a time.
class FlowPoints {
 public:
  // Both must outlive this.
  FlowPoints(TraceFindingLog& log, TraceSummary& summary) : log_(log), summary_(summary) {}

  // How an event takes part in a flow, in the order in which Perfetto applies those of one event.
  enum class Kind : uint8_t {
    kBoundIn,  // a LegacyEvent's bind_id with direction in: ends here, and may end elsewhere too
    kStep,     // begins or continues
    // Ends here.
    kTerminating,
  };

  // Adds a point at the log's position.
  void Take(uint64_t id, uint64_t time_ns, Kind kind);
  // Follows all flows. Called once, after the last event.
  void Finish();

 private:
  // A point with its position, for findings.
  struct Point {
    uint64_t id = 0;
    // In ns of the trace's clock.
    uint64_t time_ns = 0;
    uint64_t packet = 0;  // orders points of one time
    // The packet's offset, shifted left by kKindBits, and the kind in the low bits.
    uint64_t offset_and_kind = 0;
  };
  // Follows the points of one id, sorted by time. Logs those that end a flow that has not begun.
  void Follow(const Point* begin, const Point* end);

  TraceFindingLog& log_;
  TraceSummary& summary_;
  std::vector<Point> points_;
};

}  // namespace neurontrace
