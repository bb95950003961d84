// SPDX-License-Identifier: Apache-2.0
#include "lib/base/steady_clock.h"

#include <algorithm>
#include <utility>

namespace neurontrace {
namespace {

// How often Read tries for two readings that are less than kReadingNsMax apart. A machine so
// overloaded that all of them fail gets the last pair: a false step of a second or more is reported
// then, which is better than not returning.
constexpr int kReadingsMax = 8;
constexpr uint64_t kReadingNsMax = 1'000'000'000;

}  // namespace

SteadyClock::SteadyClock(const Clock& system, std::optional<int64_t> offset_ns) : system_(system) {
  SetOffset(offset_ns);
}

// Both clocks must be read at one moment: a process that was stopped between the two readings would
// see a step.
SteadyClock::Reading SteadyClock::Read() const {
  Reading reading;
  for (int i = 0; i < kReadingsMax; ++i) {
    const uint64_t before_ns = system_.BoottimeNs();
    reading = {.realtime_ns = system_.RealtimeNs(), .boottime_ns = system_.BoottimeNs()};
    if (reading.boottime_ns - before_ns < kReadingNsMax) break;
  }
  return reading;
}

uint64_t SteadyClock::Update(const Reading& reading) const {
  const uint64_t steady_ns = reading.boottime_ns + static_cast<uint64_t>(offset_ns_);
  // Another thread's later reading may have come first.
  if (reading.boottime_ns < read_boottime_ns_) return steady_ns;
  // The slew is limited over the time since the last reading, whoever made it. Clients therefore
  // have to read the clock regularly: after a long pause a large correction would be applied at
  // once.
  const uint64_t passed_ns =
      reading.boottime_ns - std::exchange(read_boottime_ns_, reading.boottime_ns);
  const auto ahead_ns = static_cast<int64_t>(reading.realtime_ns - steady_ns);
  // A step is a change of the distance, not the distance itself: a clock that stays an hour ahead
  // was set once.
  const int64_t change_ns = ahead_ns - ahead_ns_;
  if (change_ns >= kNoticedNs || change_ns <= -kNoticedNs) ++steps_;
  ahead_ns_ = ahead_ns;
  // Somebody set the clock. Following it would take hours and give all stamps in between a wrong
  // date; ClockSteps of the aggregator reports it, and an operator decides.
  if (ahead_ns <= -kStepNs || ahead_ns >= kStepNs) return steady_ns;
  // Divides first, as passed_ns times kSlewPpm may overflow.
  const auto slewed_ns_max = static_cast<int64_t>(passed_ns / (1'000'000 / kSlewPpm));
  const int64_t slewed_ns = std::clamp(ahead_ns, -slewed_ns_max, slewed_ns_max);
  offset_ns_ += slewed_ns;
  ahead_ns_ -= slewed_ns;
  return steady_ns + static_cast<uint64_t>(slewed_ns);
}

uint64_t SteadyClock::RealtimeNs() const {
  const Reading reading = Read();
  const MutexLock lock(mutex_);
  return Update(reading);
}

int64_t SteadyClock::StepNs() const {
  const Reading reading = Read();
  const MutexLock lock(mutex_);
  Update(reading);
  return ahead_ns_ >= kNoticedNs || ahead_ns_ <= -kNoticedNs ? ahead_ns_ : 0;
}

uint64_t SteadyClock::steps() const {
  const MutexLock lock(mutex_);
  return steps_;
}

int64_t SteadyClock::OffsetNs() const {
  const MutexLock lock(mutex_);
  return offset_ns_;
}

void SteadyClock::SetOffset(std::optional<int64_t> offset_ns) {
  const Reading reading = Read();
  const MutexLock lock(mutex_);
  offset_ns_ = offset_ns.value_or(static_cast<int64_t>(reading.realtime_ns - reading.boottime_ns));
  read_boottime_ns_ = reading.boottime_ns;
  ahead_ns_ = static_cast<int64_t>(reading.realtime_ns - reading.boottime_ns) - offset_ns_;
}

}  // namespace neurontrace
