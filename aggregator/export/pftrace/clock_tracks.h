// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/track_table.h"

namespace neurontrace {

// A point of a counter that shows a clock's bound or correction over time. A plain value.
struct ClockPoint {
  // The value of a bound that is not known.
  static constexpr int64_t kUnknown = -1;
  uint64_t at_ns = 0;
  int64_t value = 0;
  friend bool operator==(const ClockPoint&, const ClockPoint&) = default;
};

// The stretch of time that is shown, in reference time or, if `is_raw`, in the clock's own.
struct ClockInterval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool is_raw = false;
};

// Returns a point where each piece of the map begins, by time. If the stretch has more than
// `points_max` pieces, each point represents several, with the worst bound of them. A pure
// function.
std::vector<ClockPoint> BoundPoints(const ClockMap& map, const ClockInterval& stretch,
                                    size_t points_max);

// Returns what the map adds to raw time, in the same way and with a point at the end. A point that
// represents several pieces is followed by the value that is furthest from it.
std::vector<ClockPoint> CorrectionPoints(const ClockMap& map, const ClockInterval& stretch,
                                         size_t points_max);

// Shows the clocks of a trace's instances: for each a counter of its bound, one of the correction
// that was made, and its findings as instants. Begin prepares everything; then events are taken in
// the order of time. Used by one thread at a time.
class ClockTracks {
 public:
  // Limits on the points of one counter and of all counters, and on the findings of one instance:
  // clocks must not dominate a trace.
  static constexpr size_t kPointsPerCounterMax = 2'048;
  static constexpr size_t kPointsMax = 131'072;
  static constexpr size_t kFindingsMax = 64;

  // Prepares the events and describes their tracks. The header and its clocks must outlive this
  // object.
  void Begin(const TimelineHeader& header, const ClockReport& report, TrackTable& tracks);

  // Returns the time of the next event; UINT64_MAX if there is none, see has_next().
  uint64_t next_ns() const { return next_ < items_.size() ? items_[next_].at_ns : UINT64_MAX; }
  bool has_next() const { return next_ < items_.size(); }
  // Writes the event at next_ns() into `out` and proceeds to the next.
  void Take(Interner& interner, TrackEventFields& out);

 private:
  // A point of a counter, a finding, or a violation of order.
  struct Item {
    uint64_t at_ns = 0;
    uint32_t track_uuid = 0;
    // Of a counter's point.
    int64_t value = 0;
    // Set for a finding.
    const ClockFinding* finding = nullptr;
    // Set for a violation; `check` is then the one that found it.
    const OrderViolation* violation = nullptr;
    const OrderCheck* check = nullptr;  // its
    const InstanceClock* clock = nullptr;
    size_t further_findings = 0;
  };
  void AddCounter(const std::vector<ClockPoint>& points, uint32_t track_uuid);
  void AddFindings(const InstanceClock& clock, const ClockInterval& stretch, uint32_t track_uuid);
  void AddViolations(std::span<const OrderCheck> order, const InstanceClock& clock,
                     const ClockInterval& stretch, uint32_t track_uuid);
  static void AddViolation(const Item& item, Interner& interner, TrackEventFields& out);

  std::vector<Item> items_;  // by time
  size_t next_ = 0;
};

}  // namespace neurontrace
