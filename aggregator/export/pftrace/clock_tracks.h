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

// How a clock's bound or correction runs over a stretch of time, as a counter shows it.
struct ClockPoint {
  static constexpr int64_t kUnknown = -1;  // a bound that is not known
  uint64_t at_ns = 0;
  int64_t value = 0;
  friend bool operator==(const ClockPoint&, const ClockPoint&) = default;
};

// The stretch that is shown, in reference time or, if `is_raw`, in the clock's own.
struct ClockStretch {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool is_raw = false;
};

// A point where each piece of the map begins. Of a map with more than `points_max` pieces in the
// stretch, each point stands for several, and for the worst of them. Pure; by time.
std::vector<ClockPoint> BoundPoints(const ClockMap& map, const ClockStretch& stretch,
                                    size_t points_max);

// What the map adds: the same, with a point at the end. Where a point stands for several pieces, it
// is followed by the one that is furthest from it.
std::vector<ClockPoint> CorrectionPoints(const ClockMap& map, const ClockStretch& stretch,
                                         size_t points_max);

// What a trace shows of its instances' clocks: for each a counter of its bound, one of the
// correction that was made, and its findings as instants. Everything is prepared by Begin, then
// taken in the order of time. One thread at a time.
class ClockTracks {
 public:
  // Points of one counter, and of all; findings of one instance.
  static constexpr size_t kPointsPerCounterMax = 2'048;
  static constexpr size_t kPointsMax = 131'072;
  static constexpr size_t kFindingsMax = 64;

  // Refers to the header. Describes the tracks.
  void Begin(const TimelineHeader& header, const ClockReport& report, TrackTable& tracks);

  // UINT64_MAX: no more.
  uint64_t next_ns() const { return next_ < items_.size() ? items_[next_].at_ns : UINT64_MAX; }
  bool has_next() const { return next_ < items_.size(); }
  // The event at next_ns().
  void Take(Interner& interner, TrackEventFields& out);

 private:
  struct Item {
    uint64_t at_ns = 0;
    uint32_t track_uuid = 0;
    int64_t value = 0;                          // of a counter
    const ClockFinding* finding = nullptr;      // of an instant
    const OrderViolation* violation = nullptr;  // the same
    const OrderCheck* check = nullptr;          // its
    const InstanceClock* clock = nullptr;
    size_t further_findings = 0;
  };
  void AddCounter(const std::vector<ClockPoint>& points, uint32_t track_uuid);
  void AddFindings(const InstanceClock& clock, const ClockStretch& stretch, uint32_t track_uuid);
  void AddViolations(std::span<const OrderCheck> order, const InstanceClock& clock,
                     const ClockStretch& stretch, uint32_t track_uuid);
  static void TakeViolation(const Item& item, Interner& interner, TrackEventFields& out);

  std::vector<Item> items_;  // by time
  size_t next_ = 0;
};

}  // namespace neurontrace
