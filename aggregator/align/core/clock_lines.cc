// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_lines.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// From a model to a map in two steps: the model is read as lines, and the lines become the pieces
// of a map that is monotone. Every step that changes y adds the change to the bound, so that the
// map's bound holds whenever the model's does. Both steps take time linear in the knots; a gap
// between segments costs a binary search over its times.

// How far lines extend beyond the evidence. Bounds grow with the distance; farther out they are
// useless.
constexpr uint64_t kMarginNs = 3'600'000'000'000;
// A map rounds the rate down, and the time that it reads from a line.
constexpr uint64_t kRoundingNs = 2;

uint64_t SaturatingAdd(uint64_t a, uint64_t b) { return Saturate(Wide{a} + Wide{b}); }

// Returns the line through the model's estimates at the first and the last time of [x_begin_ns,
// x_end_ns), with the larger of their bounds. Requires a stretch in which no other segment begins.
ClockLine LineBetween(const ClockModel& model, uint64_t x_begin_ns, uint64_t x_end_ns) {
  const ClockEstimate begin = EvaluateClock(model, x_begin_ns).estimate;
  // The last time of the line: at its end itself the next segment may apply.
  const ClockEstimate end = EvaluateClock(model, x_end_ns - 1).estimate;
  return {x_begin_ns, x_end_ns, begin.y_ns, SaturatingAdd(end.y_ns, 1),
          SaturatingAdd(std::max(begin.bound_ns, end.bound_ns), 1)};
}

// Returns the first x in [begin, end) for which `is_past` holds, as it does for all later ones, or
// `end`.
template <typename IsPast>
uint64_t FirstPast(uint64_t begin, uint64_t end, IsPast is_past) {
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    if (is_past(middle)) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

// Adds lines between segment `index` and the next: the first segment, either, then the second.
void AddGap(const ClockModel& model, size_t index, std::vector<ClockLine>& lines) {
  const uint64_t begin = model.segments[index].knots.back().x_ns;
  const uint64_t end = model.segments[index + 1].knots.front().x_ns;
  const uint64_t either = FirstPast(begin, end, [&](uint64_t x_ns) {
    const ClockReading reading = EvaluateClock(model, x_ns);
    return reading.is_ambiguous || reading.segment > index;
  });
  const uint64_t other = FirstPast(
      either, end, [&](uint64_t x_ns) { return EvaluateClock(model, x_ns).segment > index; });
  if (begin < either) lines.push_back(LineBetween(model, begin, either));
  if (either < other) lines.push_back(LineBetween(model, either, other));
  if (other < end) lines.push_back(LineBetween(model, other, end));
}

// Turns lines into pieces of a monotone ClockMap.
class MapMaker {
 public:
  void Add(const ClockLine& line);
  std::vector<ClockMap::Piece> Take() { return std::move(pieces_); }

 private:
  void AddPiece(const ClockLine& line);

  uint64_t x_end_ns_ = 0;    // of the last line
  uint64_t reached_ns_ = 0;  // the latest y so far
  std::vector<ClockMap::Piece> pieces_;
};

// Adds a line as one piece. Requires y_end_ns >= y_begin_ns. A line steeper than a map allows is
// flattened, and its bound grows by the whole rise.
void MapMaker::AddPiece(const ClockLine& line) {
  if (line.x_begin_ns >= line.x_end_ns) return;
  const Wide length = Wide{line.x_end_ns} - Wide{line.x_begin_ns};
  const Wide rise = Wide{line.y_end_ns} - Wide{line.y_begin_ns} - length;
  const Wide scaled = rise * (Wide{1} << ClockMap::kRateBits);
  // Rounded down, so that the piece never passes the begin of the next one.
  Wide rate = scaled / length;
  if (rate * length > scaled) --rate;
  uint64_t off = line.bound_ns;
  if (rate > Wide{ClockMap::kRateMax}) {
    off = SaturatingAdd(off, line.y_end_ns - line.y_begin_ns);
    rate = ClockMap::kRateMax;
  }
  const auto rounding = static_cast<uint64_t>(length >> ClockMap::kRateBits) + kRoundingNs;
  ClockMap::Piece piece{line.x_begin_ns, line.y_begin_ns, static_cast<int64_t>(rate), {}};
  if (off < kNoBound - rounding) piece.error_bound_ns = off + rounding;
  pieces_.push_back(piece);
  reached_ns_ = std::max(reached_ns_, line.y_end_ns);
}

// Adds a line that begins at or after the end of the line before it, whatever its y is.
void MapMaker::Add(const ClockLine& line) {
  // A gap between lines: nothing is known there, but the map has to stay monotone.
  if (!pieces_.empty() && x_end_ns_ < line.x_begin_ns) {
    AddPiece({x_end_ns_, line.x_begin_ns, reached_ns_, std::max(reached_ns_, line.y_begin_ns),
              kNoBound});
  }
  x_end_ns_ = line.x_end_ns;
  if (line.y_begin_ns >= reached_ns_ && line.y_end_ns >= line.y_begin_ns) return AddPiece(line);
  // The map stands still until the line has reached it.
  const uint64_t still_ns = std::max(reached_ns_, line.y_begin_ns);
  const bool never = line.y_end_ns <= still_ns;
  const uint64_t until =
      never ? line.x_end_ns : FirstPast(line.x_begin_ns, line.x_end_ns, [&](uint64_t x_ns) {
        return line.At(x_ns) >= still_ns;
      });
  const uint64_t least_ns = std::min(line.y_begin_ns, line.y_end_ns);
  AddPiece({line.x_begin_ns, until, still_ns, still_ns,
            SaturatingAdd(line.bound_ns, still_ns - least_ns)});
  // Then the piece follows the line. It is empty if the line never reaches that far.
  AddPiece(
      {until, line.x_end_ns, std::max(still_ns, line.At(until)), line.y_end_ns, line.bound_ns});
}

// The y that a line leaves open at one time; it may be below 0.
struct Span {
  Wide min;
  Wide max;
};

Span SpanOf(const ClockLine& line, uint64_t x_ns) {
  const Wide y = Wide{line.At(x_ns)};
  return {y - Wide{line.bound_ns}, y + Wide{line.bound_ns}};
}

// Returns the line at x, or the last one for a time beyond it.
const ClockLine& LineAt(std::span<const ClockLine> lines, uint64_t x_ns) {
  const auto after =
      std::upper_bound(lines.begin(), lines.end(), x_ns,
                       [](uint64_t x, const ClockLine& line) { return x < line.x_begin_ns; });
  return after == lines.begin() ? *after : *(after - 1);
}

}  // namespace

uint64_t ClockLine::At(uint64_t x_ns) const {
  // Of magnitudes, because the product of two differences can need all of 128 bits.
  using Magnitude = unsigned __int128;
  const auto magnitude = [](Wide value) { return static_cast<Magnitude>(std::max(value, -value)); };
  const Wide elapsed = Wide{x_ns} - Wide{x_begin_ns};
  const Wide rise = Wide{y_end_ns} - Wide{y_begin_ns};
  const Magnitude length = magnitude(Wide{x_end_ns} - Wide{x_begin_ns});
  const Magnitude product = magnitude(elapsed) * magnitude(rise);
  const bool falls = (elapsed < 0) != (rise < 0);
  Magnitude risen = product / length;
  if (falls && risen * length < product) ++risen;  // down
  const auto moved = static_cast<Wide>(std::min(risen, Magnitude{1} << 64));
  return Saturate(Wide{y_begin_ns} + (falls ? -moved : moved));
}

std::vector<ClockLine> LinesOf(const ClockModel& model) {
  std::vector<ClockLine> lines;
  if (model.segments.empty()) return lines;
  const uint64_t first = model.segments.front().knots.front().x_ns;
  const uint64_t last = model.segments.back().knots.back().x_ns;
  const uint64_t before = first - std::min(first, kMarginNs);
  if (before < first) lines.push_back(LineBetween(model, before, first));
  for (size_t s = 0; s < model.segments.size(); ++s) {
    const std::vector<ClockKnot>& knots = model.segments[s].knots;
    for (size_t k = 0; k + 1 < knots.size(); ++k) {
      lines.push_back({knots[k].x_ns, knots[k + 1].x_ns, knots[k].y_ns, knots[k + 1].y_ns,
                       std::max(knots[k].bound_ns, knots[k + 1].bound_ns)});
    }
    if (s + 1 < model.segments.size()) AddGap(model, s, lines);
  }
  const uint64_t after = SaturatingAdd(last, kMarginNs);
  if (last < after) lines.push_back(LineBetween(model, last, after));
  return lines;
}

std::vector<ClockLine> UnionOf(std::span<const ClockLine> first,
                               std::span<const ClockLine> second) {
  std::vector<ClockLine> lines(first.begin(), first.end());
  if (first.empty() || second.empty() || second.front().x_begin_ns >= first.back().x_end_ns) {
    lines.insert(lines.end(), second.begin(), second.end());
    return lines;
  }
  // The part in which both apply; before and after it one of them is alone.
  const uint64_t begin = std::max(second.front().x_begin_ns, first.front().x_begin_ns);
  const uint64_t end = std::min(first.back().x_end_ns, second.back().x_end_ns);
  const auto add_cut = [&](std::span<const ClockLine> from, uint64_t low, uint64_t high) {
    for (const ClockLine& line : from) {
      const uint64_t a = std::max(line.x_begin_ns, low);
      const uint64_t b = std::min(line.x_end_ns, high);
      if (a < b) lines.push_back({a, b, line.At(a), line.At(b), line.bound_ns});
    }
  };
  lines.clear();
  add_cut(first.front().x_begin_ns < begin ? first : second, 0, begin);
  // Within the overlap both lists are straight between two neighbouring corners.
  std::vector<uint64_t> corners = {begin, end};
  for (const std::span<const ClockLine> list : {first, second}) {
    for (const ClockLine& line : list) {
      if (line.x_begin_ns > begin && line.x_begin_ns < end) corners.push_back(line.x_begin_ns);
    }
  }
  std::sort(corners.begin(), corners.end());
  corners.erase(std::unique(corners.begin(), corners.end()), corners.end());
  for (size_t i = 0; i + 1 < corners.size(); ++i) {
    const ClockLine& a = LineAt(first, corners[i]);
    const ClockLine& b = LineAt(second, corners[i]);
    const auto either = [&](uint64_t x_ns) {
      const Span one = SpanOf(a, x_ns);
      const Span other = SpanOf(b, x_ns);
      return Span{std::min(one.min, other.min), std::max(one.max, other.max)};
    };
    const Span from = either(corners[i]);
    const Span to = either(corners[i + 1]);
    const Wide y0 = from.min + (from.max - from.min) / 2;
    const Wide y1 = to.min + (to.max - to.min) / 2;
    const Wide reach = std::max({from.max - y0, y0 - from.min, to.max - y1, y1 - to.min});
    lines.push_back({corners[i], corners[i + 1], Saturate(y0), Saturate(y1), Saturate(reach + 1)});
  }
  add_cut(first.back().x_end_ns > end ? first : second, end, UINT64_MAX);
  return lines;
}

ClockMap MapAlong(std::span<const ClockLine> lines) {
  if (lines.empty()) return ClockMap();
  MapMaker maker;
  // Beyond both ends the outermost lines continue, with an unknown bound.
  const ClockLine& front = lines.front();
  if (front.x_begin_ns > 0) {
    const uint64_t before = front.x_begin_ns - std::min(front.x_begin_ns, kMarginNs);
    maker.Add({before, front.x_begin_ns, front.At(before), front.y_begin_ns, kNoBound});
  }
  for (const ClockLine& line : lines) maker.Add(line);
  const ClockLine& back = lines.back();
  const uint64_t after = SaturatingAdd(back.x_end_ns, kMarginNs);
  if (back.x_end_ns < after) {
    maker.Add({back.x_end_ns, after, back.y_end_ns, back.At(after), kNoBound});
  }
  // The pieces satisfy every rule of FromPieces. Should that ever fail, the identity without a
  // bound is the safe answer.
  absl::StatusOr<ClockMap> map = ClockMap::FromPieces(maker.Take());
  return map.ok() ? *std::move(map) : ClockMap();
}

ClockMap MapOf(const ClockModel& model) { return MapAlong(LinesOf(model)); }

}  // namespace neurontrace
