// SPDX-License-Identifier: Apache-2.0
#include "tap/drain_schedule.h"

namespace neurontrace {

namespace {

uint64_t Clamp(uint64_t value, uint64_t low, uint64_t high) {
  if (value < low) return low;
  return value > high ? high : value;
}

}  // namespace

void DrainSchedule::Begin(uint64_t now_ns, uint32_t cores, uint64_t ring_events) {
  count_ = cores < kTapMaxCores ? cores : kTapMaxCores;
  const uint64_t survived_ns = ring_events < (uint64_t{1} << 30)
                                   ? ring_events * (kNsPerSecond / kSurvivedEventsPerSecond)
                                   : kIntervalMaxNs;
  interval_max_ns_ = Clamp(survived_ns, kIntervalMinNs, kIntervalMaxNs);
  for (uint32_t i = 0; i < count_; ++i) {
    cores_[i] = {now_ns, Clamp(kIntervalFirstNs, kIntervalMinNs, interval_max_ns_)};
  }
}

void DrainSchedule::Drained(uint32_t core, uint64_t now_ns, uint64_t events,
                            uint64_t events_per_fetch) {
  uint64_t interval = cores_[core].interval_ns;
  if (events >= events_per_fetch) {
    interval /= 4;
  } else if (events * 2 >= events_per_fetch) {
    interval /= 2;
  } else if (events * 8 < events_per_fetch) {
    interval *= 2;
  }
  interval = Clamp(interval, kIntervalMinNs, interval_max_ns_);
  cores_[core] = {now_ns + interval, interval};
}

void DrainSchedule::PutOff(uint32_t core, uint64_t now_ns) {
  cores_[core].due_ns = now_ns + Clamp(kIntervalFirstNs, kIntervalMinNs, interval_max_ns_);
}

bool DrainSchedule::IsDue(uint32_t core, uint64_t now_ns) const {
  return cores_[core].due_ns <= now_ns + cores_[core].interval_ns / 4;
}

uint64_t DrainSchedule::NextDueNs() const {
  uint64_t next = kNeverNs;
  for (uint32_t i = 0; i < count_; ++i) {
    if (cores_[i].due_ns < next) next = cores_[i].due_ns;
  }
  return next;
}

}  // namespace neurontrace
