// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/instance_clock.h"

#include <algorithm>
#include <span>
#include <tuple>

#include "aggregator/align/host_fit.h"
#include "aggregator/align/utc/realtime_map.h"
#include "aggregator/align/utc/utc_trust.h"
#include "lib/base/time_units.h"

namespace neurontrace {
namespace {

// Limits the findings of a host whose clock is set constantly.
constexpr size_t kStepsReportedMax = 64;

// Returns the name that reports use for a kind of probe.
std::string_view NameOf(ProbePath path) {
  switch (path) {
    case ProbePath::kUdp:
      return "udp";
    case ProbePath::kGrpc:
      return "grpc";
    case ProbePath::kPeer:
      return "peers";
    case ProbePath::kUnspecified:
      break;
  }
  return "probes";
}

// Adds a name once, in the order of first use. There are only a few, so a scan is enough.
void AddSource(std::vector<std::string>& sources, std::string_view name) {
  if (std::find(sources.begin(), sources.end(), name) == sources.end()) sources.emplace_back(name);
}

// Returns by how much, at least, the likely bound is below the bound in a window and next to it.
// Returns UINT64_MAX if no knot is near the window.
uint64_t LikelyLess(const ClockModel& model, const ReferenceWindow& window) {
  uint64_t least = UINT64_MAX;
  for (const ClockSegment& segment : model.segments) {
    for (size_t i = 0; i < segment.knots.size(); ++i) {
      const bool is_before =
          i + 1 < segment.knots.size() && segment.knots[i + 1].y_ns < window.begin_ns;
      const bool is_behind = i > 0 && segment.knots[i - 1].y_ns > window.end_ns;
      if (is_before || is_behind) continue;
      const ClockKnot& knot = segment.knots[i];
      least = std::min(least, knot.bound_ns - std::min(knot.bound_ns, knot.likely_bound_ns));
    }
  }
  return least;
}

// Reports when REALTIME was set, at most kStepsReportedMax times, in order of time among the other
// findings. The raw clock and its model are not affected, but people look for it.
void ReportSteps(std::span<const ClockEvent> events, std::vector<ClockFinding>& findings) {
  size_t told = 0;
  for (const ClockEvent& event : events) {
    if (event.kind != ClockEventKind::kRealtimeStep || told == kStepsReportedMax) continue;
    ++told;
    findings.push_back({ClockFindingKind::kBreak, event.raw_begin_ns, event.raw_end_ns,
                        event.amount_ns, "CLOCK_REALTIME was set"});
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const ClockFinding& a, const ClockFinding& b) {
                     return std::tie(a.x_begin_ns, a.x_end_ns) < std::tie(b.x_begin_ns, b.x_end_ns);
                   });
}

}  // namespace

InstanceClock FitInstanceClock(const std::string& instance_id, const std::string& boot_id,
                               const ClockEvidence& evidence,
                               const std::optional<ReferenceWindow>& window,
                               const ReferenceUtc& reference_utc) {
  InstanceClock clock;
  clock.instance_id = instance_id;
  clock.boot_id = boot_id;
  clock.exchanges = evidence.exchanges.size();
  for (const ClockExchange& exchange : evidence.exchanges) {
    AddSource(clock.sources, NameOf(exchange.path));
  }
  for (const UtcReading& reading : evidence.utc) AddSource(clock.sources, NameOf(reading.source));
  clock.model = FitHostClock(evidence, {}, reference_utc);
  // Probes alone give no map of REALTIME, and snapshots alone no reference: both are needed.
  if (clock.model.segments.empty() || evidence.snapshots.empty()) {
    clock.model.segments.clear();
    return clock;
  }
  clock.realtime = RealtimeMapOf(clock.model, evidence.snapshots, evidence.events);
  ReportSteps(evidence.events, clock.model.findings);
  // The offset at the last snapshot, and the drift over the second before it.
  const uint64_t now_ns = evidence.snapshots.back().realtime_ns;
  const uint64_t now_reference_ns = clock.realtime.ToReference(now_ns);
  // In the first second of the scale there is nothing to compare with, and the drift stays 0.
  clock.offset_ns = static_cast<int64_t>(now_reference_ns - now_ns);
  if (now_ns >= kNsPerSecond) {
    const uint64_t second_ns = now_reference_ns - clock.realtime.ToReference(now_ns - kNsPerSecond);
    clock.drift_ppb = static_cast<int64_t>(std::min<uint64_t>(second_ns, INT64_MAX)) -
                      static_cast<int64_t>(kNsPerSecond);
  }
  // The ns before the last snapshot: the bound at the snapshot itself would be that of the piece
  // after it.
  const uint64_t reference_ns = clock.realtime.ToReference(now_ns - std::min<uint64_t>(now_ns, 1));
  const ReferenceWindow in = window.value_or(ReferenceWindow{reference_ns, reference_ns});
  SetBoundsIn(in, clock);
  return clock;
}

// The bound is read from the map of events; how much smaller the likely one is comes from the
// model.
void SetBoundsIn(const ReferenceWindow& window, InstanceClock& clock) {
  if (clock.model.segments.empty()) return;
  clock.bound_ns = 0;
  for (const ClockBound& bound : BoundsIn(clock.realtime, window)) {
    clock.bound_ns = std::max(clock.bound_ns, bound.bound_ns);
  }
  const uint64_t less_ns = LikelyLess(clock.model, window);
  clock.likely_bound_ns = clock.bound_ns - std::min(clock.bound_ns, less_ns);
}

}  // namespace neurontrace
