// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Keeps, of many clock snapshots, those that carry information: what lies between two kept ones is
// on the straight line from one to the other, to within its own bracket and 50 ns, and the kernel
// steered the same way all the time. This is the swinging door algorithm for data compression
// (Bristol, 1990): a cone of slopes narrows with each point and a point outside ends the line. The
// first snapshots are kept, then at least one every second of raw: a reader does not see the
// others, and may trust REALTIME only as far as an unseen slew could have taken it between two kept
// ones. At most kKeptPerSecond on average; more are dropped and counted. A plain value.
class SnapshotFilter {
 public:
  static constexpr double kKeptPerSecond = 2;
  static constexpr double kKeptAtOnceMax = 32;
  static constexpr uint64_t kIntervalMaxNs = 1'000'000'000;
  static constexpr uint64_t kKeptAtFirst = 3;  // a rate is known by its neighbours

  // Appends to `kept` what has to be kept now that `snapshot` is known: nothing, it, or the one
  // before and it.
  void Add(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);
  // Appends `snapshot` and the one before it unconditionally: something happened between them.
  void Keep(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);

  // Returns the previous snapshot; nullptr before the first.
  const ClockSnapshot* last() const { return last_ ? &*last_ : nullptr; }
  uint64_t dropped_snapshots() const { return dropped_; }

 private:
  // The slopes, against raw, of all lines from the last kept snapshot that pass within tolerance of
  // every snapshot since.
  struct Cone {
    double least = -1e9;
    double greatest = 1e9;
    bool Holds(double slope) const { return slope >= least && slope <= greatest; }
    void Narrow(double slope, double tolerance);
  };
  struct Slopes {
    double realtime = 0;
    double monotonic = 0;
    double tolerance = 0;
  };
  Slopes SlopesTo(const ClockSnapshot& snapshot) const;
  bool IsInformative(const ClockSnapshot& snapshot) const;
  void Begin(const ClockSnapshot& snapshot);

  std::optional<ClockSnapshot> kept_;
  std::optional<ClockSnapshot> last_;
  Cone realtime_;
  Cone monotonic_;
  double allowance_ = kKeptAtOnceMax;
  uint64_t kept_at_first_ = 0;
  uint64_t dropped_ = 0;
};

}  // namespace neurontrace
