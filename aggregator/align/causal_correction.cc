// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_correction.h"

#include <algorithm>
#include <utility>

#include "aggregator/align/clock_reading.h"

namespace neurontrace {
namespace {

using Wide = __int128;

// Rounds down.
int64_t Part(int64_t whole, uint64_t numerator, uint64_t denominator) {
  constexpr int64_t kSmall = int64_t{1} << 31;
  if (whole > -kSmall && whole < kSmall && (numerator | denominator) >> 31 == 0) {
    const int64_t product = whole * static_cast<int64_t>(numerator);
    const auto divisor = static_cast<int64_t>(denominator);
    return product / divisor - (product % divisor < 0 ? 1 : 0);
  }
  const Wide product = Wide{whole} * Wide{numerator};
  const Wide divisor{denominator};
  return static_cast<int64_t>(product / divisor) - (product % divisor < 0 ? 1 : 0);
}

uint64_t Shifted(uint64_t time_ns, int64_t shift_ns) {
  if (shift_ns < 0 && time_ns < static_cast<uint64_t>(-shift_ns)) return 0;
  return time_ns + static_cast<uint64_t>(shift_ns);
}

uint64_t Magnitude(int64_t shift_ns) {
  return static_cast<uint64_t>(shift_ns < 0 ? -shift_ns : shift_ns);
}

uint64_t Sum(uint64_t bound_ns, uint64_t shift_ns) {
  return bound_ns > UINT64_MAX - shift_ns ? UINT64_MAX : bound_ns + shift_ns;
}

// Between two knots.
uint64_t ReferenceAt(const ClockKnot& a, const ClockKnot& b, uint64_t x_ns) {
  return a.y_ns + static_cast<uint64_t>(
                      Part(static_cast<int64_t>(b.y_ns - a.y_ns), x_ns - a.x_ns, b.x_ns - a.x_ns));
}

// How far x goes while y goes so far on the line through two knots; on that of one knot as far.
uint64_t Reach(const ClockKnot& a, const ClockKnot& b, uint64_t y_distance_ns) {
  if (b.y_ns <= a.y_ns) return y_distance_ns;
  return static_cast<uint64_t>(
      Part(static_cast<int64_t>(b.x_ns - a.x_ns), y_distance_ns, b.y_ns - a.y_ns));
}

class SegmentCorrector {
 public:
  SegmentCorrector(const CausalCorrections& corrections, size_t clock)
      : corrections_(corrections), clock_(clock) {}

  // `first`, `last`: of the model's segments.
  ClockSegment Correct(const ClockSegment& segment, bool first, bool last) const {
    ClockSegment corrected{.cause = segment.cause, .knots = {}};
    if (first) AddShiftKnotsBefore(segment, corrected.knots);
    for (size_t i = 0; i < segment.knots.size(); ++i) {
      if (i > 0) AddShiftKnots(segment.knots[i - 1], segment.knots[i], corrected.knots);
      Add(segment.knots[i], corrected.knots);
    }
    if (last) AddShiftKnotsBehind(segment, corrected.knots);
    return corrected;
  }

 private:
  // Where a shift bends between two knots of the model.
  void AddShiftKnots(const ClockKnot& a, const ClockKnot& b, std::vector<ClockKnot>& into) const {
    const CausalGrid& grid = corrections_.grid();
    if (b.x_ns <= a.x_ns + 1 || b.y_ns <= a.y_ns) return;
    const size_t first = a.y_ns < grid.begin_ns ? 0 : (a.y_ns - grid.begin_ns) / grid.epoch_ns + 1;
    for (size_t k = first; k < grid.knots() && grid.KnotNs(k) < b.y_ns; ++k) {
      if (!BendsAt(k)) continue;
      const uint64_t x =
          a.x_ns + static_cast<uint64_t>(Part(static_cast<int64_t>(b.x_ns - a.x_ns),
                                              grid.KnotNs(k) - a.y_ns, b.y_ns - a.y_ns));
      if (x <= a.x_ns || x >= b.x_ns || (!into.empty() && x <= into.back().x_ns)) continue;
      // Between two knots the larger bound holds, so it is this one's as well.
      Add({.x_ns = x,
           .y_ns = ReferenceAt(a, b, x),
           .bound_ns = std::max(a.bound_ns, b.bound_ns),
           .likely_bound_ns = std::max(a.likely_bound_ns, b.likely_bound_ns)},
          into);
    }
  }

  // Beyond the model's ends its outermost line goes on, but the shift need not.
  void AddShiftKnotsBefore(const ClockSegment& segment, std::vector<ClockKnot>& into) const {
    const CausalGrid& grid = corrections_.grid();
    const ClockKnot& front = segment.knots.front();
    for (size_t k = 0; k < grid.knots() && grid.KnotNs(k) < front.y_ns; ++k) {
      const size_t next = segment.knots.size() > 1 ? 1 : 0;
      const uint64_t away = Reach(front, segment.knots[next], front.y_ns - grid.KnotNs(k));
      if (!BendsAt(k) || away >= front.x_ns) continue;
      AddBeyond(segment, front.x_ns - away, into);
    }
  }
  void AddShiftKnotsBehind(const ClockSegment& segment, std::vector<ClockKnot>& into) const {
    const CausalGrid& grid = corrections_.grid();
    const ClockKnot& back = segment.knots.back();
    for (size_t k = grid.EpochOf(back.y_ns); k < grid.knots(); ++k) {
      if (!BendsAt(k) || grid.KnotNs(k) <= back.y_ns) continue;
      const size_t before = segment.knots.size() > 1 ? segment.knots.size() - 2 : 0;
      AddBeyond(segment, back.x_ns + Reach(segment.knots[before], back, grid.KnotNs(k) - back.y_ns),
                into);
    }
  }
  void AddBeyond(const ClockSegment& segment, uint64_t x_ns, std::vector<ClockKnot>& into) const {
    const ClockEstimate estimate = EvaluateSegment(segment, x_ns);
    if (!into.empty() && x_ns <= into.back().x_ns) return;
    Add({.x_ns = x_ns,
         .y_ns = estimate.y_ns,
         .bound_ns = estimate.bound_ns,
         .likely_bound_ns = estimate.likely_bound_ns},
        into);
  }

  bool BendsAt(size_t knot) const {
    if (knot == 0 || knot + 1 >= corrections_.grid().knots()) return true;
    const CausalEpoch& before = corrections_.At(knot - 1, clock_);
    const CausalEpoch& at = corrections_.At(knot, clock_);
    const CausalEpoch& behind = corrections_.At(knot + 1, clock_);
    return at.shift_ns - before.shift_ns != behind.shift_ns - at.shift_ns ||
           at.bound_ns != before.bound_ns || at.likely_bound_ns != before.likely_bound_ns;
  }

  void Add(const ClockKnot& knot, std::vector<ClockKnot>& into) const {
    const uint64_t shift = LargestShiftAround(knot.y_ns);
    const CausalEpoch epoch = BoundsAround(knot.y_ns);
    const uint64_t hard = std::min(Sum(knot.bound_ns, shift), epoch.bound_ns);
    into.push_back({.x_ns = knot.x_ns,
                    .y_ns = Shifted(knot.y_ns, corrections_.ShiftAt(clock_, knot.y_ns)),
                    .bound_ns = hard,
                    .likely_bound_ns =
                        std::min({hard, Sum(knot.likely_bound_ns, shift), epoch.likely_bound_ns})});
  }

  // Of the epochs that a piece beginning or ending here can lie in.
  std::pair<size_t, size_t> EpochsAround(uint64_t y_ns) const {
    const CausalGrid& grid = corrections_.grid();
    return {grid.EpochOf(y_ns == 0 ? 0 : y_ns - 1), grid.EpochOf(y_ns + 1)};
  }
  CausalEpoch BoundsAround(uint64_t y_ns) const {
    const CausalGrid& grid = corrections_.grid();
    const auto [from, to] = EpochsAround(y_ns);
    CausalEpoch worst{.bound_ns = 0, .likely_bound_ns = 0};
    // A piece that begins or ends here reaches beyond what the constraints tell of.
    if (y_ns <= grid.begin_ns || y_ns >= grid.KnotNs(grid.epochs)) return {};
    for (size_t epoch = from; epoch <= to; ++epoch) {
      const CausalEpoch& at = corrections_.At(epoch, clock_);
      worst.bound_ns = std::max(worst.bound_ns, at.bound_ns);
      worst.likely_bound_ns = std::max(worst.likely_bound_ns, at.likely_bound_ns);
    }
    return worst;
  }
  uint64_t LargestShiftAround(uint64_t y_ns) const {
    const auto [from, to] = EpochsAround(y_ns);
    uint64_t largest = 0;
    for (size_t knot = from; knot <= to + 1; ++knot) {
      largest = std::max(largest, Magnitude(corrections_.At(knot, clock_).shift_ns));
    }
    return largest;
  }

  const CausalCorrections& corrections_;
  const size_t clock_;
};

}  // namespace

bool operator==(const CausalCorrections& a, const CausalCorrections& b) {
  return a.grid_.begin_ns == b.grid_.begin_ns && a.grid_.epoch_ns == b.grid_.epoch_ns &&
         a.grid_.epochs == b.grid_.epochs && a.clocks_ == b.clocks_ && a.epochs_ == b.epochs_;
}

int64_t CausalCorrections::ShiftAt(size_t clock, uint64_t reference_ns) const {
  if (empty()) return 0;
  if (reference_ns <= grid_.begin_ns) return At(0, clock).shift_ns;
  if (reference_ns >= grid_.KnotNs(grid_.epochs)) return At(grid_.epochs, clock).shift_ns;
  const size_t knot = grid_.EpochOf(reference_ns);
  const int64_t from = At(knot, clock).shift_ns;
  const int64_t to = At(knot + 1, clock).shift_ns;
  return from + Part(to - from, reference_ns - grid_.KnotNs(knot), grid_.epoch_ns);
}

uint64_t CausalCorrections::Corrected(size_t clock, uint64_t reference_ns) const {
  return Shifted(reference_ns, ShiftAt(clock, reference_ns));
}

bool CausalCorrections::Concerns(size_t clock) const {
  for (size_t at = clock; at < epochs_.size(); at += clocks_) {
    if (epochs_[at] != CausalEpoch{}) return true;
  }
  return false;
}

ClockModel ApplyCorrections(const ClockModel& model, const CausalCorrections& corrections,
                            size_t first_clock) {
  ClockModel corrected = model;
  if (corrections.empty()) return corrected;
  for (size_t i = 0; i < model.segments.size(); ++i) {
    const size_t clock = first_clock + i;
    if (!corrections.Concerns(clock)) continue;
    corrected.segments[i] = SegmentCorrector(corrections, clock)
                                .Correct(model.segments[i], i == 0, i + 1 == model.segments.size());
  }
  return corrected;
}

}  // namespace neurontrace
