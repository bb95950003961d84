// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/clock_tracks.h"

#include <fmt/format.h>

#include <algorithm>

namespace neurontrace {
namespace {

// What the trace shows, as far as that is known beforehand.
ClockStretch StretchOf(const TimelineHeader& header) {
  uint64_t end_ns = header.begin_ns;
  for (const TimelineStream& stream : header.streams) {
    if (stream.description.events == 0) continue;
    end_ns = std::max(
        end_ns,
        std::min(kTimeMaxNs, stream.clock->ToReference(stream.description.last_timestamp_ns)));
  }
  return {.begin_ns = std::max(header.begin_ns, header.filter->window_start_ns),
          .end_ns = std::min(end_ns, header.filter->window_end_ns),
          .is_raw = header.raw_clocks};
}

}  // namespace

void ClockTracks::Begin(const TimelineHeader& header, const ClockReport& report,
                        TrackTable& tracks) {
  const ClockStretch stretch = StretchOf(header);
  if (report.known().empty() || stretch.begin_ns >= stretch.end_ns) return;
  const size_t points_max =
      std::clamp<size_t>(kPointsMax / (2 * report.known().size()), 2, kPointsPerCounterMax);
  for (const InstanceClock* clock : report.known()) {
    const ClockTrackUuids uuids = tracks.DescribeClock(clock->instance_id, clock->boot_id);
    AddCounter(BoundPoints(clock->realtime, stretch, points_max), uuids.bound);
    AddCounter(CorrectionPoints(clock->realtime, stretch, points_max), uuids.correction);
    AddFindings(*clock, stretch, uuids.findings);
    AddViolations(report.order(), *clock, stretch, uuids.findings);
  }
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.at_ns < b.at_ns; });
}

void ClockTracks::AddCounter(const std::vector<ClockPoint>& points, uint32_t track_uuid) {
  for (const ClockPoint& point : points) {
    items_.push_back({.at_ns = point.at_ns, .track_uuid = track_uuid, .value = point.value});
  }
}

void ClockTracks::AddFindings(const InstanceClock& clock, const ClockStretch& stretch,
                              uint32_t track_uuid) {
  const TimedFindings timed = FindingsOf(clock, kFindingsMax);
  for (const TimedFinding& finding : timed.findings) {
    const uint64_t at_ns =
        stretch.is_raw ? clock.realtime.ToRaw(finding.begin_ns) : finding.begin_ns;
    if (at_ns < stretch.begin_ns || at_ns >= stretch.end_ns) continue;
    items_.push_back({.at_ns = at_ns,
                      .track_uuid = track_uuid,
                      .finding = finding.finding,
                      .clock = &clock,
                      .further_findings = timed.left_out});
  }
}

// On the track of the instance that is shown to leave too early.
void ClockTracks::AddViolations(std::span<const OrderCheck> order, const InstanceClock& clock,
                                const ClockStretch& stretch, uint32_t track_uuid) {
  for (const OrderCheck& check : order) {
    for (const OrderViolation& violation : check.violations) {
      if (violation.left_by != clock.instance_id) continue;
      const uint64_t at_ns =
          stretch.is_raw ? clock.realtime.ToRaw(violation.reference_ns) : violation.reference_ns;
      if (at_ns < stretch.begin_ns || at_ns >= stretch.end_ns) continue;
      items_.push_back({.at_ns = at_ns,
                        .track_uuid = track_uuid,
                        .violation = &violation,
                        .check = &check,
                        .clock = &clock});
    }
  }
}

void ClockTracks::TakeViolation(const Item& item, Interner& interner, TrackEventFields& out) {
  const OrderViolation& violation = *item.violation;
  const auto name = [&interner](std::string_view text) { return interner.AnnotationName(text); };
  out.Start(perfetto::EventType::kInstant, item.track_uuid);
  out.Name(
      interner.EventName(fmt::format("{} left before it was entered", item.check->event_type)));
  out.InternedString(name("left_by"), interner.StringValue(violation.left_by));
  out.InternedString(name("entered_by"), interner.StringValue(violation.entered_by));
  out.Int(name("amount_ns"), violation.amount_ns);
  out.Uint(name("bound_ns"), violation.bound_ns);
  out.Uint(name("exec_id"), violation.exec_id);
  out.Uint(name("op_id"), violation.operation);
  out.String(name("words"), item.check->words);
}

void ClockTracks::Take(Interner& interner, TrackEventFields& out) {
  const Item& item = items_[next_++];
  if (item.violation != nullptr) return TakeViolation(item, interner, out);
  if (item.finding == nullptr) {
    out.Start(perfetto::EventType::kCounter, item.track_uuid);
    out.CounterValue(item.value);
    return;
  }
  const ClockFinding& finding = *item.finding;
  const auto name = [&interner](std::string_view text) { return interner.AnnotationName(text); };
  out.Start(perfetto::EventType::kInstant, item.track_uuid);
  out.Name(interner.EventName(fmt::format("clock {}", ToString(finding.kind))));
  out.InternedString(name("instance_id"), interner.StringValue(item.clock->instance_id));
  out.String(name("words"), finding.words);
  out.Int(name("amount_ns"), finding.amount_ns);
  out.Uint(name("raw_begin_ns"), finding.x_begin_ns);
  out.Uint(name("raw_end_ns"), finding.x_end_ns);
  if (item.further_findings > 0) out.Uint(name("findings_left_out"), item.further_findings);
}

}  // namespace neurontrace
