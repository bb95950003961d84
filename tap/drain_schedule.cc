// SPDX-License-Identifier: Apache-2.0
// The schedule adapts each core's interval to the events that it returned when it was due. As many
// as a fetch may return quarter the interval, half as many halve it, and less than an eighth
// doubles it. Next looks at every core, at most kTapMaxCores.
#include "tap/drain_schedule.h"

namespace neurontrace::tap {

namespace {

uint64_t Clamp(uint64_t value, uint64_t low, uint64_t high) {
  if (value < low) return low;
  return value > high ? high : value;
}

}  // namespace

void DrainSchedule::Begin(uint64_t now_ns, uint32_t cores, uint64_t ring_events,
                          uint64_t events_per_fetch) {
  count_ = cores < kTapMaxCores ? cores : kTapMaxCores;
  owed_ = false;
  ring_events_ = ring_events;
  events_per_fetch_ = events_per_fetch;
  // The longest interval after which a ring has not wrapped even at kSurvivedEventsPerSecond. The
  // comparison avoids an overflow.
  const uint64_t survived_ns = ring_events < (uint64_t{1} << 30)
                                   ? ring_events * (kNsPerSecond / kSurvivedEventsPerSecond)
                                   : kIntervalMaxNs;
  interval_max_ns_ = Clamp(survived_ns, kIntervalMinNs, kIntervalMaxNs);
  for (uint32_t i = 0; i < count_; ++i) {
    Core& core = cores_[i];
    core.due_ns = now_ns;
    core.interval_ns = Clamp(kIntervalFirstNs, kIntervalMinNs, interval_max_ns_);
    core.events = 0;
    core.fill.Begin(now_ns);
  }
}

bool DrainSchedule::IsDue(uint32_t core, uint64_t now_ns) const {
  // Cores that are nearly due are fetched in the same round: fewer wake-ups disturb the application
  // less.
  return cores_[core].due_ns <= now_ns + cores_[core].interval_ns / 4;
}

uint32_t DrainSchedule::Next(uint64_t now_ns) {
  uint32_t nearest = kNoSlot;
  uint32_t longest = kNoSlot;
  uint64_t nearest_ns = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    if (!IsDue(i, now_ns)) continue;
    const uint64_t left_ns = NsToOverwrite(i, now_ns);
    const bool sooner = nearest == kNoSlot || left_ns < nearest_ns ||
                        (left_ns == nearest_ns && cores_[i].due_ns < cores_[nearest].due_ns);
    if (sooner) {
      nearest = i;
      nearest_ns = left_ns;
    }
    if (longest == kNoSlot || cores_[i].due_ns < cores_[longest].due_ns) longest = i;
  }
  if (nearest == kNoSlot) return kNoSlot;
  // The turn alternates even if no core is overdue, so that a core that becomes overdue waits for
  // one fetch at most.
  const bool overdue = cores_[longest].due_ns + kOverdueNs <= now_ns;
  const uint32_t next = owed_ && overdue ? longest : nearest;
  owed_ = !owed_;
  return next;
}

void DrainSchedule::Drained(uint32_t core, uint64_t fetched_ns, uint64_t now_ns, uint64_t events,
                            bool more) {
  Core& drained = cores_[core];
  // The time at which the fetch began counts: events that arrived during it may or may not be in
  // it.
  drained.fill.Took(fetched_ns, events, !more);
  drained.events += events;
  uint64_t interval = drained.interval_ns;
  // Reacts to a full fetch faster than to a thin one, as only the former can lose events.
  if (drained.events >= events_per_fetch_) {
    interval /= 4;
  } else if (drained.events * 2 >= events_per_fetch_) {
    interval /= 2;
  } else if (drained.events * 8 < events_per_fetch_) {
    interval *= 2;
  }
  drained.interval_ns = Clamp(interval, kIntervalMinNs, interval_max_ns_);
  drained.due_ns = more ? now_ns : now_ns + drained.interval_ns;
  if (!more) drained.events = 0;
}

void DrainSchedule::PutOff(uint32_t core, uint64_t now_ns) {
  cores_[core].due_ns = now_ns + Clamp(kIntervalFirstNs, kIntervalMinNs, interval_max_ns_);
}

uint64_t DrainSchedule::NsToOverwrite(uint32_t core, uint64_t now_ns) const {
  const uint64_t left_ns = cores_[core].fill.NsToFull(now_ns, ring_events_, kLongestNs);
  // An unknown rate counts as urgent, so that a core is measured soon.
  return left_ns == FillRate::kUnknownNs ? 0 : left_ns;
}

uint64_t DrainSchedule::NextDueNs() const {
  uint64_t next = kNeverNs;
  for (uint32_t i = 0; i < count_; ++i) {
    if (cores_[i].due_ns < next) next = cores_[i].due_ns;
  }
  return next;
}

}  // namespace neurontrace::tap
