// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/reference_clock.h"

#include <utility>

namespace neurontrace {

ReferenceClock::ReferenceClock(uint64_t origin_ns, std::vector<Restart> restarts)
    : origin_ns_(origin_ns), restarts_(std::move(restarts)) {}

uint64_t ReferenceClock::Read(int64_t true_ns) const {
  uint64_t reading = origin_ns_ + static_cast<uint64_t>(true_ns);
  for (const Restart& restart : restarts_) {
    if (true_ns >= restart.at_ns) reading += static_cast<uint64_t>(restart.step_ns);
  }
  return reading;
}

uint32_t ReferenceClock::EpochAt(int64_t true_ns) const {
  uint32_t epoch = 1;
  for (const Restart& restart : restarts_) epoch += true_ns >= restart.at_ns ? 1 : 0;
  return epoch;
}

bool ReferenceClock::IsUp(int64_t true_ns) const {
  for (const Restart& restart : restarts_) {
    if (true_ns >= restart.at_ns && true_ns < restart.at_ns + restart.down_ns) return false;
  }
  return true;
}

}  // namespace neurontrace
