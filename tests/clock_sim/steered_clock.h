// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neurontrace {

// From this reading of raw on, the kernel runs REALTIME faster than raw by `rate_ppm`. It steps
// first, by step_ns.
struct Steering {
  uint64_t raw_ns = 0;
  double rate_ppm = 0;
  int64_t step_ns = 0;
  bool told = true;  // adjtimex shows the rate; false: an adjtime(3) slew, which it does not
};

// A host's REALTIME and MONOTONIC: raw, slewed and stepped on a schedule. Constant after
// construction: any thread may read it.
class SteeredClock {
 public:
  // The first steering has to hold from the least reading that will be asked for.
  SteeredClock(uint64_t realtime_origin_ns, std::vector<Steering> schedule);

  uint64_t Realtime(uint64_t raw_ns) const;
  uint64_t Monotonic(uint64_t raw_ns) const;
  const Steering& At(uint64_t raw_ns) const { return schedule_[IndexAt(raw_ns)]; }
  const std::vector<Steering>& schedule() const { return schedule_; }

 private:
  struct Begin {
    uint64_t realtime_ns;
    uint64_t monotonic_ns;
  };
  size_t IndexAt(uint64_t raw_ns) const;
  static uint64_t Elapsed(const Steering& steering, uint64_t raw_ns);

  std::vector<Steering> schedule_;
  std::vector<Begin> begins_;
};

}  // namespace neurontrace
