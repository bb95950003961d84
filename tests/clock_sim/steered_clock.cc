// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/steered_clock.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace neurontrace {

SteeredClock::SteeredClock(uint64_t realtime_origin_ns, std::vector<Steering> schedule)
    : schedule_(std::move(schedule)) {
  Begin begin{.realtime_ns = realtime_origin_ns, .monotonic_ns = schedule_.front().raw_ns};
  for (size_t i = 0; i < schedule_.size(); ++i) {
    if (i > 0) {
      const uint64_t elapsed = Elapsed(schedule_[i - 1], schedule_[i].raw_ns);
      begin.realtime_ns += elapsed;
      begin.monotonic_ns += elapsed;
    }
    begin.realtime_ns += static_cast<uint64_t>(schedule_[i].step_ns);
    begins_.push_back(begin);
  }
}

uint64_t SteeredClock::Elapsed(const Steering& steering, uint64_t raw_ns) {
  const int64_t raw_elapsed = static_cast<int64_t>(raw_ns - steering.raw_ns);
  const double gained = static_cast<double>(raw_elapsed) * steering.rate_ppm * 1e-6;
  return static_cast<uint64_t>(raw_elapsed + static_cast<int64_t>(std::floor(gained)));
}

size_t SteeredClock::IndexAt(uint64_t raw_ns) const {
  const auto after = std::upper_bound(
      schedule_.begin(), schedule_.end(), raw_ns,
      [](uint64_t raw, const Steering& steering) { return raw < steering.raw_ns; });
  return after == schedule_.begin() ? 0 : static_cast<size_t>(after - schedule_.begin()) - 1;
}

uint64_t SteeredClock::Realtime(uint64_t raw_ns) const {
  const size_t index = IndexAt(raw_ns);
  return begins_[index].realtime_ns + Elapsed(schedule_[index], raw_ns);
}

uint64_t SteeredClock::Monotonic(uint64_t raw_ns) const {
  const size_t index = IndexAt(raw_ns);
  return begins_[index].monotonic_ns + Elapsed(schedule_[index], raw_ns);
}

}  // namespace neurontrace
