// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

namespace neurontrace {

struct Interval {
  double min = 0;
  double max = 0;
  double middle() const { return min + (max - min) / 2; }
  double width() const { return max - min; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// How a clock may stray from an even pace. What a bound is worth is what these are worth.
struct WanderLimits {
  // By how much the rate changes in a second, at most. 50 is 0.05 ppm/s: a temperature that climbs
  // by half a kelvin a second.
  double wander_ns_per_s2 = 50;
  // By how much the rate changes at most while nothing is known of the clock, however long.
  double rate_change_ns_per_s = 1'000;

  // How far the offset comes at most from where its rate would have carried it.
  double Reach(double seconds) const;
  // How far the offset comes at most from the straight line between where it was at the two ends.
  double Sag(double seconds) const;
};

// All that a clock can be at one instant: a convex set of (offset [ns], rate of the offset [ns/s]).
// The truth lies in it as long as every constraint was true and the clock keeps the limits: every
// operation rounds outward, and a set with too many corners is replaced by one that contains it.
//
// Offsets must be within 10^12 of 0 and rates within 10^9, where rounding is far below the margin
// that Propagate adds. A value; flat, without allocations.
class WanderPolygon {
 public:
  WanderPolygon(Interval offset, Interval rate);

  // What the clock can be `seconds` later, or earlier if they are negative.
  void Propagate(double seconds, const WanderLimits& limits);
  // Leaves out the offsets beyond `offset`. False, and unchanged, if that is all of them.
  bool ClipAtMost(double offset);
  bool ClipAtLeast(double offset);
  // Also lets in what is so near.
  void Widen(double offset, double rate);

  Interval Offset() const;
  Interval Rate() const;
  // What Offset() can be so much later: no more than after Propagate(), in a fraction of the time.
  Interval OffsetAfter(double seconds, const WanderLimits& limits) const;
  // The offsets of what both contain; nullopt if that is nothing.
  std::optional<Interval> CommonOffset(const WanderPolygon& other) const;

  int vertex_count() const { return size_; }

 private:
  // With more corners than the most it gets few again, before the sum with a box adds four. Cuts,
  // which come after it, leave more often fewer corners than more: so most sums need none removed.
  static constexpr int kVerticesFew = 12;
  static constexpr int kVerticesMax = 16;
  static constexpr int kCapacity = kVerticesMax + 4 + 4;
  using Row = std::array<double, kCapacity>;

  int Next(int i) const { return i + 1 == size_ ? 0 : i + 1; }
  int Previous(int i) const { return i == 0 ? size_ - 1 : i - 1; }
  void SetBox(Interval offset, Interval rate);
  void Shear(double seconds);
  struct Farthest {
    int bottom = 0, right = 0, top = 0, left = 0;
  };
  Farthest FindFarthest() const;
  bool Clip(double sign, double offset);
  void Reduce();
  double EdgeCost(int i) const;
  void RemoveEdge(int i);

  // Corners, counterclockwise.
  Row offset_;
  Row rate_;
  int size_ = 0;
};

}  // namespace neurontrace
