// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/clock_points.h"

#include <algorithm>
#include <span>

namespace neurontrace {
namespace {

// The pieces that a stretch touches, and each one's begin in it.
class Pieces {
 public:
  Pieces(const ClockMap& map, const ClockStretch& stretch) : map_(map), stretch_(stretch) {
    const auto all = map.pieces();
    const auto begins_after = [&](uint64_t time_ns) {
      return std::upper_bound(
          all.begin(), all.end(), time_ns,
          [&](uint64_t at_ns, const ClockMap::Piece& piece) { return at_ns < BeginOf(piece); });
    };
    if (stretch.begin_ns >= stretch.end_ns) return;
    auto first = begins_after(stretch.begin_ns);
    if (first != all.begin()) --first;
    pieces_ = {first, std::max(first + 1, begins_after(stretch.end_ns - 1))};
    begin_raw_ns_ = RawAt(stretch.begin_ns);
  }

  size_t size() const { return pieces_.size(); }
  const ClockMap::Piece& operator[](size_t i) const { return pieces_[i]; }
  uint64_t At(size_t i) const {
    return i == 0 ? stretch_.begin_ns : std::max(stretch_.begin_ns, BeginOf(pieces_[i]));
  }
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
  const ClockStretch stretch_;
  std::span<const ClockMap::Piece> pieces_;
  uint64_t begin_raw_ns_ = 0;
};

// Pieces that share a point.
size_t PiecesPerPoint(size_t pieces, size_t points_max) {
  return (pieces + points_max - 1) / points_max;
}

int64_t BoundOf(const ClockMap::Piece& piece) {
  if (!piece.error_bound_ns) return ClockPoint::kUnknown;
  return static_cast<int64_t>(std::min<uint64_t>(*piece.error_bound_ns, INT64_MAX));
}

uint64_t Distance(int64_t a, int64_t b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

}  // namespace

std::vector<ClockPoint> BoundPoints(const ClockMap& map, const ClockStretch& stretch,
                                    size_t points_max) {
  const Pieces pieces(map, stretch);
  std::vector<ClockPoint> points;
  const size_t step = PiecesPerPoint(pieces.size(), points_max);
  for (size_t begin = 0; begin < pieces.size(); begin += step) {
    ClockPoint point{pieces.At(begin), BoundOf(pieces[begin])};
    for (size_t i = begin; i < std::min(begin + step, pieces.size()); ++i) {
      const int64_t bound = BoundOf(pieces[i]);
      if (point.value != ClockPoint::kUnknown &&
          (bound == ClockPoint::kUnknown || bound > point.value)) {
        point.value = bound;
      }
    }
    if (points.empty() || points.back().value != point.value) points.push_back(point);
  }
  return points;
}

std::vector<ClockPoint> CorrectionPoints(const ClockMap& map, const ClockStretch& stretch,
                                         size_t points_max) {
  const Pieces pieces(map, stretch);
  std::vector<ClockPoint> points;
  const auto add = [&points](const ClockPoint& point) {
    if (points.empty() || points.back().value != point.value) points.push_back(point);
  };
  const size_t step = PiecesPerPoint(pieces.size(), std::max<size_t>(1, points_max / 2));
  for (size_t begin = 0; begin < pieces.size(); begin += step) {
    const ClockPoint first = pieces.Correction(begin);
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
  if (!points.empty()) add(pieces.CorrectionAtEnd());
  return points;
}

}  // namespace neurontrace
