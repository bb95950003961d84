// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/realtime_map.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "aggregator/align/clock_reading.h"
#include "base/status.h"

namespace neurontrace {
namespace {

using Wide = __int128;

// No slew is as fast (chrony's limit is 83,333 ppm): what is, was set.
constexpr double kStepSlope = 0.1;
// By how much a rate may differ from what adjtimex said of it at either end.
constexpr double kSteeringMargin = 1e-6;
// What a snapshot filter lets pass as a straight line, and the roundings of this map.
constexpr double kLineToleranceNs = 50 + 2;
// For so long beyond the outermost snapshots something is said, with a bound that grows as that of
// a clock of which nothing is known.
constexpr uint64_t kBeyondNs = 10'000'000'000;
constexpr uint64_t kLongBeforeNs = 3'600'000'000'000;

uint64_t Middle(const ClockSnapshot& s) {
  return s.raw_begin_ns + (s.raw_end_ns - s.raw_begin_ns) / 2;
}
double HalfBracket(const ClockSnapshot& s) {
  return std::ceil(static_cast<double>(s.raw_end_ns - s.raw_begin_ns) / 2);
}
double Difference(uint64_t a, uint64_t b) {
  return static_cast<double>(static_cast<int64_t>(a - b));
}

// How much faster than raw the kernel makes REALTIME run (adjtimex(2); 10 ms ticks).
double SteeredRate(const ClockSnapshot& s) {
  const double tick = s.tick_us == 0 ? 0 : (static_cast<double>(s.tick_us) - 10'000) / 10'000;
  return static_cast<double>(s.frequency) / 65'536 * 1e-6 + tick;
}

// How far REALTIME can be from the straight line between two snapshots: the one corner that a line
// of slopes from `least` to `greatest` can have and still meet both ends.
double Bend(const ClockSnapshot& a, const ClockSnapshot& b) {
  if (a.frequency == b.frequency && a.tick_us == b.tick_us && a.status == b.status) return 0;
  const double run = Difference(Middle(b), Middle(a));
  const double slope = (Difference(b.realtime_ns, a.realtime_ns) - run) / run;
  const double least = std::min({SteeredRate(a), SteeredRate(b), slope}) - kSteeringMargin;
  const double greatest = std::max({SteeredRate(a), SteeredRate(b), slope}) + kSteeringMargin;
  return (greatest - slope) * (slope - least) / (greatest - least) * run;
}

// A stretch of the map, without its end.
struct Line {
  uint64_t realtime_ns = 0;
  uint64_t realtime_end_ns = 0;
  uint64_t y_ns = 0;
  uint64_t y_end_ns = 0;
  std::optional<double> bound_ns;

  uint64_t At(uint64_t at_ns) const {
    const Wide rise = Wide{y_end_ns} - Wide{y_ns};
    const Wide run = Wide{realtime_end_ns} - Wide{realtime_ns};
    return y_ns + static_cast<uint64_t>(rise * Wide{at_ns - realtime_ns} / run);
  }
};

class Tracer {
 public:
  explicit Tracer(const ClockModel& model) : model_(model) {
    for (const ClockSegment& segment : model.segments) {
      for (const ClockKnot& knot : segment.knots) corners_.push_back(knot.x_ns);
    }
  }

  // Straight from one snapshot to the next, with the model's corners between them.
  void Run(const ClockSnapshot& a, const ClockSnapshot& b) {
    const uint64_t from = Middle(a);
    const uint64_t to = Middle(b);
    const double width = std::max(HalfBracket(a), HalfBracket(b)) + kLineToleranceNs + Bend(a, b);
    uint64_t begin = from;
    const auto realtime = [&](uint64_t raw) {
      const Wide rise = Wide{static_cast<int64_t>(b.realtime_ns - a.realtime_ns)};
      return a.realtime_ns + static_cast<uint64_t>(rise * Wide{raw - from} / Wide{to - from});
    };
    const auto line_to = [&](uint64_t end) {
      const ClockEstimate left = EvaluateClock(model_, begin).estimate;
      const ClockEstimate right = EvaluateClock(model_, end).estimate;
      Add({realtime(begin), realtime(end), left.y_ns, right.y_ns, Wider(left, right) + width});
      begin = end;
    };
    for (auto at = std::upper_bound(corners_.begin(), corners_.end(), from);
         at != corners_.end() && *at < to; ++at) {
      line_to(*at);
    }
    line_to(to);
  }

  // Somebody set REALTIME between two snapshots, nobody knows when. It may have gone on as before
  // up to b, or as it does now from a on.
  void Step(const ClockSnapshot& a, const ClockSnapshot& b) {
    const uint64_t run = Middle(b) - Middle(a);
    const uint64_t shown_last_ns = a.realtime_ns + run;
    const uint64_t shown_first_ns = b.realtime_ns > run ? b.realtime_ns - run : 0;
    const ClockEstimate at_a = EvaluateClock(model_, Middle(a)).estimate;
    const ClockEstimate at_b = EvaluateClock(model_, Middle(b)).estimate;
    const double width = Wider(at_a, at_b) + HalfBracket(a) + HalfBracket(b) + kLineToleranceNs;
    if (b.realtime_ns > a.realtime_ns) {  // forwards: what lies between was shown here, if ever
      const double doubt = std::max(0.0, Difference(at_b.y_ns, at_a.y_ns));
      Add({a.realtime_ns, b.realtime_ns, at_a.y_ns, at_a.y_ns, width + doubt});
      return;
    }
    while (!lines_.empty() && lines_.back().realtime_ns >= shown_first_ns) lines_.pop_back();
    if (!lines_.empty() && lines_.back().realtime_end_ns > shown_first_ns) {
      lines_.back().y_end_ns = lines_.back().At(shown_first_ns);
      lines_.back().realtime_end_ns = shown_first_ns;
    }
    const uint64_t early_ns = at_a.y_ns - (a.realtime_ns - shown_first_ns);
    const uint64_t late_ns = at_b.y_ns - run;
    const double half = std::abs(Difference(late_ns, early_ns)) / 2 + 1;
    const uint64_t middle_ns = early_ns + static_cast<uint64_t>((late_ns - early_ns) / 2);
    const uint64_t length_ns = shown_last_ns - shown_first_ns;
    Add({shown_first_ns, shown_last_ns, middle_ns, middle_ns + length_ns,
         width + half + kUnknownRate * static_cast<double>(length_ns)});
  }

  // Beyond the outermost snapshots: on as if it ran with the reference, first with a bound that
  // grows as for a clock of which nothing is known, then without.
  void Begin(const ClockSnapshot& first) {
    const ClockEstimate estimate = EvaluateClock(model_, Middle(first)).estimate;
    const uint64_t room_ns = std::min({first.realtime_ns, estimate.y_ns, kLongBeforeNs});
    const uint64_t known_ns = std::min(room_ns, kBeyondNs);
    if (room_ns > known_ns) AddOutside(first, estimate, -Wide{room_ns}, -Wide{known_ns}, false);
    if (known_ns > 0) AddOutside(first, estimate, -Wide{known_ns}, 0, true);
  }
  void End(const ClockSnapshot& last) {
    const ClockEstimate estimate = EvaluateClock(model_, Middle(last)).estimate;
    AddOutside(last, estimate, 0, Wide{kBeyondNs}, true);
    AddOutside(last, estimate, Wide{kBeyondNs}, Wide{2 * kBeyondNs}, false);
  }

  std::vector<Line> Take() { return std::move(lines_); }

 private:
  static double Wider(const ClockEstimate& a, const ClockEstimate& b) {
    return static_cast<double>(std::max(a.bound_ns, b.bound_ns));
  }

  void AddOutside(const ClockSnapshot& snapshot, const ClockEstimate& estimate, Wide from, Wide to,
                  bool is_known) {
    const auto add = [](uint64_t ns, Wide by) { return static_cast<uint64_t>(Wide{ns} + by); };
    Line line{add(snapshot.realtime_ns, from), add(snapshot.realtime_ns, to),
              add(estimate.y_ns, from), add(estimate.y_ns, to), std::nullopt};
    if (is_known) {
      line.bound_ns = static_cast<double>(estimate.bound_ns) + HalfBracket(snapshot) +
                      kLineToleranceNs + kUnknownRate * static_cast<double>(kBeyondNs);
    }
    Add(line);
  }

  // Without what REALTIME has shown before: that is said already, with all it could mean.
  void Add(Line line) {
    const uint64_t from_ns = lines_.empty() ? 0 : lines_.back().realtime_end_ns;
    if (line.realtime_end_ns <= std::max(from_ns, line.realtime_ns)) return;
    if (line.realtime_ns < from_ns) {
      line.y_ns = line.At(from_ns);
      line.realtime_ns = from_ns;
    }
    lines_.push_back(line);
  }

  const ClockModel& model_;
  std::vector<uint64_t> corners_;  // of the model, in raw, ascending
  std::vector<Line> lines_;        // one after the other
};

uint64_t BoundOf(double bound_ns) {
  constexpr double kMax = 9e18;
  return static_cast<uint64_t>(std::ceil(std::clamp(bound_ns, 0.0, kMax)));
}

// A map never runs backwards: where a line would begin before the one before it ends, it is moved
// as far as it takes, and its bound says so.
std::vector<ClockMap::Piece> PiecesOf(const std::vector<Line>& lines) {
  std::vector<ClockMap::Piece> pieces;
  uint64_t reached_ns = 0;
  for (Line line : lines) {
    double moved_ns = 0;
    if (line.y_ns < reached_ns) {
      moved_ns = Difference(reached_ns, line.y_ns);
      line.y_ns = reached_ns;
    }
    line.y_end_ns = std::max(line.y_end_ns, line.y_ns);
    const Wide run = Wide{line.realtime_end_ns} - Wide{line.realtime_ns};
    const Wide more = (Wide{line.y_end_ns} - Wide{line.y_ns} - run) << ClockMap::kRateBits;
    const Wide rate = more / run - (more % run < 0 ? 1 : 0);  // down: never beyond the line's end
    ClockMap::Piece piece{.raw_begin_ns = line.realtime_ns, .reference_begin_ns = line.y_ns};
    piece.rate =
        static_cast<int64_t>(std::clamp<Wide>(rate, ClockMap::kRateMin, ClockMap::kRateMax));
    if (rate > ClockMap::kRateMax) moved_ns += static_cast<double>((more >> ClockMap::kRateBits));
    if (line.bound_ns) piece.error_bound_ns = BoundOf(*line.bound_ns + moved_ns);
    pieces.push_back(piece);
    reached_ns = line.y_end_ns;
  }
  return pieces;
}

}  // namespace

absl::StatusOr<ClockMap> MakeRealtimeMap(const std::vector<ClockSnapshot>& snapshots,
                                         const ClockModel& model) {
  if (snapshots.empty()) return InvalidArgument("there is no snapshot of the host's clocks");
  if (model.segments.empty()) return InvalidArgument("the model has no segment");
  Tracer tracer(model);
  tracer.Begin(snapshots.front());
  for (size_t i = 0; i + 1 < snapshots.size(); ++i) {
    const ClockSnapshot& a = snapshots[i];
    const ClockSnapshot& b = snapshots[i + 1];
    if (Middle(b) <= Middle(a)) continue;
    const double run = Difference(Middle(b), Middle(a));
    const double slope = (Difference(b.realtime_ns, a.realtime_ns) - run) / run;
    if (std::abs(slope) < kStepSlope) {
      tracer.Run(a, b);
    } else {
      tracer.Step(a, b);
    }
  }
  tracer.End(snapshots.back());
  return ClockMap::FromPieces(PiecesOf(tracer.Take()));
}

}  // namespace neurontrace
