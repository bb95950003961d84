// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>

namespace neurontrace {

// A closed interval. middle() and width() require finite ends.
struct Interval {
  double min = 0;
  double max = 0;
  double middle() const { return min + (max - min) / 2; }
  double width() const { return max - min; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// How a clock may stray from an even pace. Every bound is only as good as these assumptions.
struct WanderLimits {
  // How much the rate may change per second. 50 is 0.05 ppm/s: a temperature that rises by half a
  // kelvin per second.
  double wander_ns_per_s2 = 50;
  // How much the rate may change in total while nothing is known of the clock, however long that
  // is.
  double rate_change_ns_per_s = 1'000;

  // Returns how far the offset can be from where its rate would have carried it.
  double Reach(double seconds) const;
  // Returns how far the offset can be from the straight line between its values at the two ends.
  double SagittaNs(double seconds) const;
};

// Everything that a clock can be at one instant: a convex set of (offset [ns], rate of the offset
// [ns/s]). It contains the truth if every constraint was true and the clock keeps the limits. Every
// operation rounds outward, and a set with too many corners is replaced by a larger one with fewer.
//
// Offsets must be within 10^12 of 0 and rates within 10^9, where rounding is far below the margin
// that Propagate adds. A value with inline storage, as a fit makes millions of them.
class WanderPolygon {
 public:
  WanderPolygon(Interval offset, Interval rate);

  // Replaces the set by what the clock can be `seconds` later, or earlier if negative.
  void Propagate(double seconds, const WanderLimits& limits);
  // Remove the offsets beyond `offset`. Return false, and change nothing, if that is all of them.
  bool ClipAtMost(double offset);
  bool ClipAtLeast(double offset);
  // Adds everything within this distance of the set.
  void Widen(double offset, double rate);

  // Return the extent of the set along one axis, in time linear in its corners.
  Interval Offset() const;
  Interval Rate() const;
  // Returns what Offset() can be `seconds` later: no more than after Propagate, in a fraction of
  // the time.
  Interval OffsetAfter(double seconds, const WanderLimits& limits) const;
  // Returns the offsets of the intersection; nullopt if it is empty. The intersection may be larger
  // than the exact one by the margins, never smaller.
  std::optional<Interval> CommonOffset(const WanderPolygon& other) const;

  int vertex_count() const { return size_; }

 private:
  // A set with more than kVerticesMax corners is reduced to kVerticesFew before a sum with a box
  // adds four. The cuts after that usually remove more corners than they add, so most sums need no
  // reduction.
  static constexpr int kVerticesFew = 12;
  static constexpr int kVerticesMax = 16;
  static constexpr int kCapacity = kVerticesMax + 4 + 4;
  using Row = std::array<double, kCapacity>;

  int Next(int i) const { return i + 1 == size_ ? 0 : i + 1; }
  int Previous(int i) const { return i == 0 ? size_ - 1 : i - 1; }
  // Replaces the set by a rectangle, grown by the margins.
  void SetBox(Interval offset, Interval rate);
  // Moves every corner by its own rate, as an even clock would move.
  void Shear(double seconds);
  // Corners with extreme coordinates.
  struct Farthest {
    int bottom = 0, right = 0, top = 0, left = 0;
  };
  Farthest FindFarthest() const;
  // Implements ClipAtMost for a sign of 1 and ClipAtLeast for -1.
  bool Clip(double sign, double offset);
  // Reduces the number of corners to kVerticesFew if there are more than kVerticesMax. The set can
  // only grow.
  void Reduce();
  double EdgeCost(int i) const;
  // Replaces both ends of edge i by the point where its two neighbours meet. Requires a finite
  // EdgeCost(i).
  void RemoveEdge(int i);

  // Corners, counterclockwise.
  Row offset_;
  Row rate_;
  int size_ = 0;
};

}  // namespace neurontrace
