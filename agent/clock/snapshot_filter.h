// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "trace/clock_evidence.h"

namespace neurontrace {

// Of many snapshots those that say something: what was between two kept ones lies on the straight
// line from one to the other, to within its own bracket and 50 ns, and the kernel steered the same
// way all the time. The first are kept, then at least one every second of raw: who reads them does
// not know of those let go, and trusts REALTIME only as far as a slew that nobody saw can have
// taken it between two kept ones. At most kKeptPerSecond on average; what is let go beyond that is
// counted. A plain value.
class SnapshotFilter {
 public:
  static constexpr double kKeptPerSecond = 2;
  static constexpr double kKeptAtOnceMax = 32;
  static constexpr uint64_t kIntervalMaxNs = 1'000'000'000;
  static constexpr uint64_t kKeptAtFirst = 3;  // a rate is known by its neighbours

  // Appends to `kept` what is worth it now that `snapshot` is there: nothing, it, or the one before
  // and it.
  void Add(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);
  // The same for one that must be kept, and the one before it: something happened between them.
  void Keep(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept);

  // The one before; nullptr at the beginning.
  const ClockSnapshot* last() const { return last_ ? &*last_ : nullptr; }
  uint64_t let_go() const { return let_go_; }

 private:
  // The slopes, against raw, of lines from the kept snapshot that meet all that came after it.
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
  bool SaysSomething(const ClockSnapshot& snapshot) const;
  void Begin(const ClockSnapshot& snapshot);

  std::optional<ClockSnapshot> kept_;
  std::optional<ClockSnapshot> last_;
  Cone realtime_;
  Cone monotonic_;
  double allowance_ = kKeptAtOnceMax;
  uint64_t kept_at_first_ = 0;
  uint64_t let_go_ = 0;
};

}  // namespace neurontrace
