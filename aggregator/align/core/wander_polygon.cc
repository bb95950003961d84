// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/wander_polygon.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace neurontrace {
namespace {

// The prediction and the update of a set-membership filter with two states. Prediction shears the
// set and adds a box (Minkowski sum); an update cuts it with a half plane (Sutherland-Hodgman). All
// costs are linear in the corners, at most 24, except those of Reduce and CommonOffset, which are
// quadratic. Checked against simulated clocks that wander as badly as they may
// (wander_polygon_test.cc).

// Added on every side by every propagation: thousands of times the rounding error of a corner, and
// negligible beside a nanosecond.
constexpr double kOffsetMargin = 1e-3;
constexpr double kRateMargin = 1e-6;
// Edges whose lines meet at a smaller angle (its sine) are not extended: the new corner would be
// far away, and rounding could put it anywhere.
constexpr double kAngleMin = 1e-6;
constexpr double kNever = std::numeric_limits<double>::infinity();

// Returns a positive value if the second vector turns counterclockwise from the first.
double Cross(double a1, double b1, double a2, double b2) { return a1 * b2 - b1 * a2; }

// The half plane on the inner side of an edge, moved outward by the margin: At() >= 0 is inside.
struct HalfPlane {
  double offset, rate, d_offset, d_rate, margin;
  double At(double a, double b) const {
    return Cross(d_offset, d_rate, a - offset, b - rate) + margin;
  }
};

}  // namespace

// A constant change of the rate by w for t seconds moves the offset by w*t*t/2, until the rate has
// changed as much as it may; from there on it moves in a straight line.
double WanderLimits::Reach(double seconds) const {
  const double t = std::abs(seconds);
  const double t_capped = rate_change_ns_per_s / wander_ns_per_s2;
  return t <= t_capped ? wander_ns_per_s2 * t * t / 2 : rate_change_ns_per_s * (t - t_capped / 2);
}

// The curve that leaves its chord farthest bends one way throughout: w*t*t/8 in the middle. Over
// long times the change of the rate is the tighter limit.
double WanderLimits::SagittaNs(double seconds) const {
  const double t = std::abs(seconds);
  return std::min(wander_ns_per_s2 * t * t / 8, rate_change_ns_per_s * t / 2);
}

WanderPolygon::WanderPolygon(Interval offset, Interval rate) { SetBox(offset, rate); }

// Replaces the corners by those of a box, counterclockwise from the lower left.
void WanderPolygon::SetBox(Interval offset, Interval rate) {
  // Never without an area: sums and cuts need a left and a right side.
  const double a0 = offset.min - kOffsetMargin, a1 = offset.max + kOffsetMargin;
  const double b0 = rate.min - kRateMargin, b1 = rate.max + kRateMargin;
  size_ = 4;
  offset_[0] = a0, offset_[1] = a1, offset_[2] = a1, offset_[3] = a0;
  rate_[0] = b0, rate_[1] = b0, rate_[2] = b1, rate_[3] = b1;
}

// An affine map: convexity and the order of the corners are kept.
void WanderPolygon::Shear(double seconds) {
  for (int i = 0; i < size_; ++i) offset_[i] += rate_[i] * seconds;
}

// What a wander w can do in t seconds is a lens: if the rate changes by s*w*t, |s| <= 1, the offset
// is s*w*t*t/2 +- w*t*t/4*(1-s*s) from where the old rate would have carried it. Sheared by half
// the time the lens is upright and fits into a box.
void WanderPolygon::Propagate(double seconds, const WanderLimits& limits) {
  if (seconds == 0) return;
  const double t = std::abs(seconds);
  const double w = limits.wander_ns_per_s2;
  if (w * t <= limits.rate_change_ns_per_s) {
    Shear(seconds / 2);
    Widen(w * t * t / 4, w * t);
    Shear(seconds / 2);
  } else {
    Shear(seconds);
    Widen(limits.Reach(t), limits.rate_change_ns_per_s);
  }
}

// The Minkowski sum of the set and a box. Between the four extreme corners each corner moves with
// one corner of the box; each of the four moves with two.
void WanderPolygon::Widen(double offset, double rate) {
  Reduce();
  offset += kOffsetMargin;
  rate += kRateMargin;
  Row offsets;
  Row rates;
  int n = 0;
  const Farthest far = FindFarthest();
  double across = offset;
  double up = -rate;
  const auto add = [&](int i) {
    offsets[n] = offset_[i] + across;
    rates[n++] = rate_[i] + up;
  };
  int i = far.bottom;
  for (int left = size_; left > 0; --left, i = Next(i)) {
    add(i);
    if (i == far.right) up = rate, add(i);
    if (i == far.top) across = -offset, add(i);
    if (i == far.left && i != far.bottom) up = -rate, add(i);
  }
  if (far.left == far.bottom) {
    add(i);
    up = -rate;
  }
  add(i);
  offset_ = offsets;
  rate_ = rates;
  size_ = n;
}

// Returns the first of equal corners.
WanderPolygon::Farthest WanderPolygon::FindFarthest() const {
  Farthest far;
  for (int i = 1; i < size_; ++i) {
    if (rate_[i] < rate_[far.bottom]) far.bottom = i;
    if (offset_[i] > offset_[far.right]) far.right = i;
    if (rate_[i] > rate_[far.top]) far.top = i;
    if (offset_[i] < offset_[far.left]) far.left = i;
  }
  return far;
}

bool WanderPolygon::ClipAtMost(double offset) { return Clip(1, offset); }
bool WanderPolygon::ClipAtLeast(double offset) { return Clip(-1, offset); }

// Keeps what is at most `offset` for a sign of 1, or at least for -1. Both include the margin, so
// that the rest has an area. One step of the Sutherland-Hodgman algorithm.
bool WanderPolygon::Clip(double sign, double offset) {
  const double least = sign > 0 ? Offset().min : -Offset().max;
  if (!(least <= sign * offset)) return false;
  const double most = sign * offset + kOffsetMargin;
  std::array<double, 2 * kCapacity> offsets;
  std::array<double, 2 * kCapacity> rates;
  int n = 0;
  double before = sign * offset_[size_ - 1] - most;
  double before_rate = rate_[size_ - 1];
  for (int i = 0; i < size_; ++i) {
    const double beyond = sign * offset_[i] - most;
    if ((beyond > 0) != (before > 0)) {  // the edge crosses the line
      offsets[n] = sign * most;
      rates[n++] = before_rate + (rate_[i] - before_rate) * (before / (before - beyond));
    }
    if (beyond <= 0) {
      offsets[n] = offset_[i];
      rates[n++] = rate_[i];
    }
    before = beyond;
    before_rate = rate_[i];
  }
  // There is one more corner at most, unless rounding has bent a side; then the larger set remains.
  if (n > kCapacity) return true;
  size_ = n;
  std::copy_n(offsets.begin(), n, offset_.begin());
  std::copy_n(rates.begin(), n, rate_.begin());
  return true;
}

Interval WanderPolygon::Offset() const {
  const auto [least, most] = std::minmax_element(offset_.begin(), offset_.begin() + size_);
  return {*least, *most};
}

Interval WanderPolygon::Rate() const {
  const auto [least, most] = std::minmax_element(rate_.begin(), rate_.begin() + size_);
  return {*least, *most};
}

// The extremes of a linear function are at corners, so no propagated polygon is needed.
Interval WanderPolygon::OffsetAfter(double seconds, const WanderLimits& limits) const {
  Interval range{kNever, -kNever};
  for (int i = 0; i < size_; ++i) {
    const double offset = offset_[i] + rate_[i] * seconds;
    range.min = std::min(range.min, offset);
    range.max = std::max(range.max, offset);
  }
  const double reach = limits.Reach(seconds) + kOffsetMargin;
  return {range.min - reach, range.max + reach};
}

// Cuts this set with one edge of the other after another, from one buffer into the other in turn.
// Stopping early leaves a larger set, which is still safe.
std::optional<Interval> WanderPolygon::CommonOffset(const WanderPolygon& other) const {
  // Each cutting edge adds one corner at most, unless rounding has bent a side.
  std::array<double, 4 * kCapacity> a[2];
  std::array<double, 4 * kCapacity> b[2];
  int from = 0;
  int n = size_;
  std::copy_n(offset_.begin(), n, a[0].begin());
  std::copy_n(rate_.begin(), n, b[0].begin());
  for (int edge = 0; edge < other.size_ && n > 0; ++edge) {
    const int end = other.Next(edge);
    HalfPlane plane{other.offset_[edge], other.rate_[edge],
                    other.offset_[end] - other.offset_[edge], other.rate_[end] - other.rate_[edge],
                    0};
    plane.margin = kOffsetMargin * (std::abs(plane.d_offset) + std::abs(plane.d_rate));
    if (n + 2 > 2 * kCapacity) break;
    const int to = 1 - from;
    int kept = 0;
    int last = n - 1;
    double before = plane.At(a[from][last], b[from][last]);
    for (int i = 0; i < n; last = i++) {
      const double inside = plane.At(a[from][i], b[from][i]);
      if ((inside >= 0) != (before >= 0)) {
        const double part = before / (before - inside);
        a[to][kept] = a[from][last] + (a[from][i] - a[from][last]) * part;
        b[to][kept++] = b[from][last] + (b[from][i] - b[from][last]) * part;
      }
      if (inside >= 0) {
        a[to][kept] = a[from][i];
        b[to][kept++] = b[from][i];
      }
      before = inside;
    }
    n = kept;
    from = to;
  }
  if (n == 0) return std::nullopt;
  const auto [least, most] = std::minmax_element(a[from].begin(), a[from].begin() + n);
  return Interval{*least - kOffsetMargin, *most + kOffsetMargin};
}

// Removes edges by extending their two neighbours until they meet, those first that add the least
// area, as that loses the least precision.
void WanderPolygon::Reduce() {
  if (size_ <= kVerticesMax) return;
  Row cost;
  for (int i = 0; i < size_; ++i) cost[i] = EdgeCost(i);
  while (size_ > kVerticesFew) {
    const int cheapest =
        static_cast<int>(std::min_element(cost.begin(), cost.begin() + size_) - cost.begin());
    // No edge can be removed without a corner far away: the box around the set is the last resort.
    if (cost[cheapest] == kNever) return SetBox(Offset(), Rate());
    RemoveEdge(cheapest);
    std::copy(cost.begin() + cheapest + 1, cost.begin() + size_ + 1, cost.begin() + cheapest);
    // The remaining corner is the end of one edge and the begin of the next, so four costs change.
    const int corner = cheapest == size_ ? 0 : cheapest;
    for (const int i : {Previous(Previous(corner)), Previous(corner), corner, Next(corner)}) {
      cost[i] = EdgeCost(i);
    }
  }
}

// Returns the area of the triangle on edge i between its neighbours' extensions; kNever if they do
// not meet at a reasonable place.
double WanderPolygon::EdgeCost(int i) const {
  const int p = Previous(i), j = Next(i), q = Next(j);
  const double a1 = offset_[i] - offset_[p], b1 = rate_[i] - rate_[p];
  const double a = offset_[j] - offset_[i], b = rate_[j] - rate_[i];
  const double a2 = offset_[q] - offset_[j], b2 = rate_[q] - rate_[j];
  const double turn = Cross(a1, b1, a2, b2);
  if (turn <= 0) return kNever;
  if (turn * turn <= kAngleMin * kAngleMin * (a1 * a1 + b1 * b1) * (a2 * a2 + b2 * b2)) {
    return kNever;
  }
  return std::max(0.0, Cross(a, b, a2, b2)) * std::max(0.0, Cross(a1, b1, a, b)) / (2 * turn);
}

// The neighbours p-i and j-q are extended to their crossing, which becomes corner j; corner i is
// erased.
void WanderPolygon::RemoveEdge(int i) {
  const int p = Previous(i), j = Next(i), q = Next(j);
  const double a1 = offset_[i] - offset_[p], b1 = rate_[i] - rate_[p];
  const double a2 = offset_[q] - offset_[j], b2 = rate_[q] - rate_[j];
  const double t = std::max(0.0, Cross(offset_[j] - offset_[i], rate_[j] - rate_[i], a2, b2)) /
                   Cross(a1, b1, a2, b2);
  offset_[j] = offset_[i] + a1 * t;
  rate_[j] = rate_[i] + b1 * t;
  std::copy(offset_.begin() + i + 1, offset_.begin() + size_, offset_.begin() + i);
  std::copy(rate_.begin() + i + 1, rate_.begin() + size_, rate_.begin() + i);
  --size_;
}

}  // namespace neurontrace
