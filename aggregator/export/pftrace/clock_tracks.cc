// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/clock_tracks.h"

#include <fmt/format.h>

#include <algorithm>

namespace neurontrace {
namespace {

// The pieces of a map that a stretch touches, with the begin of each inside the stretch. Hides
// whether the stretch is in raw or in reference time. Requires that the map has at least one piece;
// both arguments must outlive it.
class Pieces {
 public:
  Pieces(const ClockMap& map, const ClockInterval& stretch) : map_(map), stretch_(stretch) {
    const auto all = map.pieces();
    // The pieces ascend in both scales, so that both can be searched by halving.
    const auto begins_after = [&](uint64_t time_ns) {
      return std::upper_bound(
          all.begin(), all.end(), time_ns,
          [&](uint64_t at_ns, const ClockMap::Piece& piece) { return at_ns < BeginOf(piece); });
    };
    // An empty stretch touches no piece.
    if (stretch.begin_ns >= stretch.end_ns) return;
    auto first = begins_after(stretch.begin_ns);
    if (first != all.begin()) --first;
    pieces_ = {first, std::max(first + 1, begins_after(stretch.end_ns - 1))};
    begin_raw_ns_ = RawAt(stretch.begin_ns);
  }

  size_t size() const { return pieces_.size(); }
  const ClockMap::Piece& operator[](size_t i) const { return pieces_[i]; }
  // Returns where the piece begins inside the stretch, in the stretch's time.
  uint64_t At(size_t i) const {
    return i == 0 ? stretch_.begin_ns : std::max(stretch_.begin_ns, BeginOf(pieces_[i]));
  }
  // The correction at the begin of the piece, and at the end of the stretch.
  ClockPoint Correction(size_t i) const {
    const uint64_t raw_ns = i == 0 ? begin_raw_ns_ : pieces_[i].raw_begin_ns;
    return {At(i), CorrectionAt(raw_ns)};
  }
  ClockPoint CorrectionAtEnd() const {
    return {stretch_.end_ns, CorrectionAt(RawAt(stretch_.end_ns))};
  }

 private:
  uint64_t BeginOf(const ClockMap::Piece& piece) const {
    return stretch_.is_raw ? piece.raw_begin_ns : piece.reference_begin_ns;
  }
  uint64_t RawAt(uint64_t time_ns) const { return stretch_.is_raw ? time_ns : map_.ToRaw(time_ns); }
  int64_t CorrectionAt(uint64_t raw_ns) const {
    return static_cast<int64_t>(map_.ToReference(raw_ns) - raw_ns);
  }

  const ClockMap& map_;
  const ClockInterval stretch_;
  std::span<const ClockMap::Piece> pieces_;
  uint64_t begin_raw_ns_ = 0;
};

// Returns how many pieces share a point, rounded up.
size_t PiecesPerPoint(size_t pieces, size_t points_max) {
  return (pieces + points_max - 1) / points_max;
}

// Returns the bound in nanoseconds as a counter shows it, or kUnknown.
int64_t BoundOf(const ClockMap::Piece& piece) {
  if (!piece.error_bound_ns) return ClockPoint::kUnknown;
  return static_cast<int64_t>(std::min<uint64_t>(*piece.error_bound_ns, INT64_MAX));
}

// Returns |a - b|, which can exceed the signed type.
uint64_t Distance(int64_t a, int64_t b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

// Returns what the trace will show, as far as that is known before events are read.
ClockInterval IntervalOf(const TimelineHeader& header) {
  // The last timestamps of streams are raw, while events that are not read yet are in reference
  // time.
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

// Takes linear time in the number of pieces. Consecutive equal values are one point, because a
// counter keeps its value until the next.
std::vector<ClockPoint> BoundPoints(const ClockMap& map, const ClockInterval& stretch,
                                    size_t points_max) {
  const Pieces pieces(map, stretch);
  std::vector<ClockPoint> points;
  const size_t step = PiecesPerPoint(pieces.size(), points_max);
  for (size_t begin = 0; begin < pieces.size(); begin += step) {
    ClockPoint point{pieces.At(begin), BoundOf(pieces[begin])};
    for (size_t i = begin; i < std::min(begin + step, pieces.size()); ++i) {
      const int64_t bound = BoundOf(pieces[i]);
      // An unknown bound is worse than any other.
      if (point.value != ClockPoint::kUnknown &&
          (bound == ClockPoint::kUnknown || bound > point.value)) {
        point.value = bound;
      }
    }
    if (points.empty() || points.back().value != point.value) points.push_back(point);
  }
  return points;
}

std::vector<ClockPoint> CorrectionPoints(const ClockMap& map, const ClockInterval& stretch,
                                         size_t points_max) {
  const Pieces pieces(map, stretch);
  std::vector<ClockPoint> points;
  const auto add = [&points](const ClockPoint& point) {
    if (points.empty() || points.back().value != point.value) points.push_back(point);
  };
  // Each step makes up to two points, so it gets half of the limit.
  const size_t step = PiecesPerPoint(pieces.size(), std::max<size_t>(1, points_max / 2));
  for (size_t begin = 0; begin < pieces.size(); begin += step) {
    const ClockPoint first = pieces.Correction(begin);
    // Merged pieces keep their extreme, so that no peak is lost.
    ClockPoint furthest = first;
    for (size_t i = begin + 1; i < std::min(begin + step, pieces.size()); ++i) {
      const ClockPoint point = pieces.Correction(i);
      if (Distance(point.value, first.value) > Distance(furthest.value, first.value)) {
        furthest = point;
      }
    }
    add(first);
    add(furthest);
  }
  // The correction also changes within the last piece.
  if (!points.empty()) add(pieces.CorrectionAtEnd());
  return points;
}

void ClockTracks::Begin(const TimelineHeader& header, const ClockReport& report,
                        TrackTable& tracks) {
  const ClockInterval stretch = IntervalOf(header);
  if (report.known().empty() || stretch.begin_ns >= stretch.end_ns) return;
  // Two counters for each clock share the limit.
  const size_t points_max =
      std::clamp<size_t>(kPointsMax / (2 * report.known().size()), 2, kPointsPerCounterMax);
  for (const InstanceClock* clock : report.known()) {
    const ClockTrackUuids uuids = tracks.DescribeClock(clock->instance_id, clock->boot_id);
    AddCounter(BoundPoints(clock->realtime, stretch, points_max), uuids.bound);
    AddCounter(CorrectionPoints(clock->realtime, stretch, points_max), uuids.correction);
    AddFindings(*clock, stretch, uuids.findings);
    AddViolations(report.order(), *clock, stretch, uuids.findings);
  }
  // Items were added clock by clock, while Take needs those of all clocks by time.
  std::stable_sort(items_.begin(), items_.end(),
                   [](const Item& a, const Item& b) { return a.at_ns < b.at_ns; });
}

void ClockTracks::AddCounter(const std::vector<ClockPoint>& points, uint32_t track_uuid) {
  for (const ClockPoint& point : points) {
    items_.push_back({.at_ns = point.at_ns, .track_uuid = track_uuid, .value = point.value});
  }
}

void ClockTracks::AddFindings(const InstanceClock& clock, const ClockInterval& stretch,
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

// A violation is shown on the track of the instance that appears to leave too early.
void ClockTracks::AddViolations(std::span<const OrderCheck> order, const InstanceClock& clock,
                                const ClockInterval& stretch, uint32_t track_uuid) {
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

void ClockTracks::AddViolation(const Item& item, Interner& interner, TrackEventFields& out) {
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

// A counter's point has no name, as the track has one. A finding is an instant with its amounts as
// arguments.
void ClockTracks::Take(Interner& interner, TrackEventFields& out) {
  const Item& item = items_[next_++];
  if (item.violation != nullptr) return AddViolation(item, interner, out);
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
