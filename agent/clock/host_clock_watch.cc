// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/host_clock_watch.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/base/unique_fd.h"

namespace neurontrace {
namespace {

// About what a reading of a clock costs, so below the noise of any bracket.
constexpr double kToleranceNs = 50;
// Growth of BOOTTIME against MONOTONIC that is noise: apart from suspends both run alike.
constexpr uint64_t kBootGrowthNs = 1'000;

// Returns the time on raw to which the snapshot's clocks are attributed; it is exact to half of the
// bracket.
uint64_t Middle(const ClockSnapshot& snapshot) {
  return snapshot.raw_begin_ns + (snapshot.raw_end_ns - snapshot.raw_begin_ns) / 2;
}

double HalfBracket(const ClockSnapshot& snapshot) {
  return static_cast<double>(snapshot.raw_end_ns - snapshot.raw_begin_ns) / 2;
}

// Returns whether the kernel steered its clocks in the same way at both snapshots.
bool SteeredAlike(const ClockSnapshot& a, const ClockSnapshot& b) {
  return a.frequency == b.frequency && a.tick_us == b.tick_us && a.status == b.status &&
         a.tai_offset_s == b.tai_offset_s;
}

// Growth of BOOTTIME over MONOTONIC that is reported as a suspend: no machine sleeps for less.
constexpr int64_t kSuspendMinNs = 1'000'000;
// The kernel's own means slew REALTIME by at most 500 ppm, so less than this from one beat to the
// next. A smaller step is attributed to the last two readings.
constexpr int64_t kStepMinNs = 40'000;
// Covers the delay with which the kernel's notification of a step may be handled (1.6 s).
constexpr size_t kReadingsMax = 32;

}  // namespace

void SnapshotFilter::Cone::Narrow(double slope, double tolerance) {
  least = std::max(least, slope - tolerance);
  greatest = std::min(greatest, slope + tolerance);
}

// Slopes are relative to raw: how much faster each clock has run since the last kept snapshot. The
// brackets at both ends limit how exactly that is known. Requires a later snapshot than that one.
SnapshotFilter::Slopes SnapshotFilter::SlopesTo(const ClockSnapshot& snapshot) const {
  const double run = static_cast<double>(Middle(snapshot) - Middle(*kept_));
  const auto slope = [&](uint64_t to, uint64_t from) {
    return (static_cast<double>(static_cast<int64_t>(to - from)) - run) / run;
  };
  return {.realtime = slope(snapshot.realtime_ns, kept_->realtime_ns),
          .monotonic = slope(snapshot.monotonic_ns, kept_->monotonic_ns),
          .tolerance = (kToleranceNs + HalfBracket(snapshot) + HalfBracket(*kept_)) / run};
}

// Returns whether the snapshot is not on the line from the last kept one, so that it and the one
// before it have to be kept.
bool SnapshotFilter::SaysSomething(const ClockSnapshot& snapshot) const {
  if (!SteeredAlike(snapshot, *last_)) return true;
  const uint64_t boot = snapshot.boottime_ns - snapshot.monotonic_ns;
  const uint64_t boot_before = last_->boottime_ns - last_->monotonic_ns;
  const auto growth = static_cast<int64_t>(boot - boot_before);
  if (std::abs(growth) > static_cast<int64_t>(kBootGrowthNs) +
                             static_cast<int64_t>(HalfBracket(snapshot) + HalfBracket(*last_))) {
    return true;
  }
  // Last, as it is the only costly test.
  const Slopes slopes = SlopesTo(snapshot);
  return !realtime_.Holds(slopes.realtime) || !monotonic_.Holds(slopes.monotonic);
}

// Starts a line at the snapshot. Any slope is possible until the next one.
void SnapshotFilter::Begin(const ClockSnapshot& snapshot) {
  kept_ = snapshot;
  realtime_ = {};
  monotonic_ = {};
}

void SnapshotFilter::Add(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept) {
  // The first snapshot, or one after which raw did not advance, has no slope.
  if (!last_ || Middle(snapshot) <= Middle(*last_)) return Keep(snapshot, kept);
  const double passed_s = static_cast<double>(Middle(snapshot) - Middle(*last_)) * 1e-9;
  allowance_ = std::min(allowance_ + passed_s * kKeptPerSecond, kKeptAtOnceMax);
  if (SaysSomething(snapshot)) {
    // A token bucket: a snapshot that carries information costs two, itself and the one before it.
    if (allowance_ >= 2) return Keep(snapshot, kept);
    ++let_go_;
  } else if (kept_at_first_ + 1 < kKeptAtFirst ||
             Middle(snapshot) - Middle(*kept_) >= kIntervalMaxNs) {
    kept_at_first_ = std::min(kept_at_first_ + 1, kKeptAtFirst);
    allowance_ = std::max(allowance_ - 1, 0.0);
    kept.push_back(snapshot);
    Begin(snapshot);
  } else {
    const Slopes slopes = SlopesTo(snapshot);
    realtime_.Narrow(slopes.realtime, slopes.tolerance);
    monotonic_.Narrow(slopes.monotonic, slopes.tolerance);
  }
  last_ = snapshot;
}

void SnapshotFilter::Keep(const ClockSnapshot& snapshot, std::vector<ClockSnapshot>& kept) {
  if (last_ && *last_ != *kept_) {
    kept.push_back(*last_);
    allowance_ = std::max(allowance_ - 1, 0.0);
  }
  kept.push_back(snapshot);
  allowance_ = std::max(allowance_ - 1, 0.0);
  Begin(snapshot);
  last_ = snapshot;
}

HostClockWatch::HostClockWatch(const HostClocks& clocks, std::function<uint64_t()> waited_ns,
                               ClockEvidence& out)
    : clocks_(clocks), waited_ns_(std::move(waited_ns)), out_(out) {}

void HostClockWatch::Remember(const ClockSnapshot& snapshot) {
  readings_.push_back({.raw_begin_ns = snapshot.raw_begin_ns,
                       .raw_end_ns = snapshot.raw_end_ns,
                       .realtime_minus_raw = RealtimeMinusRaw(snapshot)});
  if (readings_.size() > kReadingsMax) readings_.pop_front();
}

// Records a suspend if the machine was suspended since the snapshot before.
void HostClockWatch::TakeSnapshot(bool keep) {
  const ClockSnapshot snapshot = ReadHostClocks(clocks_);
  beats_to_snapshot_ = kBeatsPerSnapshot;
  waited_at_snapshot_ns_ = waited_ns_ ? waited_ns_() : 0;
  // BOOTTIME counts the time of a suspend and MONOTONIC does not (clock_gettime(2)), so their
  // difference grows by its length.
  bool slept = false;
  if (const ClockSnapshot* const before = filter_.last()) {
    const uint64_t asleep = snapshot.boottime_ns - snapshot.monotonic_ns;
    const uint64_t asleep_before = before->boottime_ns - before->monotonic_ns;
    const auto amount = static_cast<int64_t>(asleep - asleep_before);
    slept = amount > kSuspendMinNs;
    if (slept) {
      out_.events.push_back({.kind = ClockEventKind::kSuspend,
                             .raw_begin_ns = raw_ns(),
                             .raw_end_ns = snapshot.raw_end_ns,
                             .amount_ns = amount});
    }
  }
  if (keep || slept) {
    filter_.Keep(snapshot, out_.snapshots);
  } else {
    filter_.Add(snapshot, out_.snapshots);
  }
  Remember(snapshot);
}

void HostClockWatch::Beat() {
  const ClockSnapshot now = clocks_.ReadOnce();
  const uint64_t last_ns = raw_ns();
  bool paused = false;
  if (last_ns != 0 && now.raw_begin_ns > last_ns + kBeatNs + kLateMaxNs) {
    uint64_t late_ns = now.raw_begin_ns - last_ns - kBeatNs;
    const uint64_t waited_ns = waited_ns_ ? waited_ns_() - waited_at_snapshot_ns_ : 0;
    // A busy machine makes this thread late too, and its clocks are fine: time spent waiting for a
    // processor is no pause of the machine.
    late_ns -= std::min(late_ns, waited_ns);
    paused = late_ns > kLateMaxNs;
    if (paused) {
      out_.events.push_back({.kind = ClockEventKind::kPause,
                             .raw_begin_ns = last_ns,
                             .raw_end_ns = now.raw_begin_ns});
    }
  }
  if (paused || --beats_to_snapshot_ <= 0) return TakeSnapshot(paused);
  Remember(now);
}

void HostClockWatch::OnRealtimeSet() {
  TakeSnapshot(/*keep=*/true);
  const double rate = SteeringRate(out_.snapshots.back());
  const auto jump_ns = [&](size_t at) {
    const Reading& before = readings_[at - 1];
    const Reading& after = readings_[at];
    const auto passed_ns = static_cast<double>(after.raw_begin_ns - before.raw_begin_ns);
    return after.realtime_minus_raw - before.realtime_minus_raw -
           static_cast<int64_t>(std::llround(passed_ns * rate));
  };
  // The kernel's notification may arrive after a beat that already saw the step, and after several
  // steps. So all readings since the last report are searched, and if none shows a large jump the
  // last pair is taken.
  bool found = false;
  for (size_t at = 1; at < readings_.size(); ++at) {
    const bool is_last = at + 1 == readings_.size();
    const int64_t amount_ns = jump_ns(at);
    if (std::abs(amount_ns) < kStepMinNs && !(is_last && !found)) continue;
    found = true;
    out_.events.push_back({.kind = ClockEventKind::kRealtimeStep,
                           .raw_begin_ns = readings_[at - 1].raw_begin_ns,
                           .raw_end_ns = readings_[at].raw_end_ns,
                           .amount_ns = amount_ns});
  }
  readings_.erase(readings_.begin(), readings_.end() - 1);  // reported, once
}

void HostClockWatch::OnBreak(ClockEventKind kind, uint64_t since_raw_ns) {
  TakeSnapshot(/*keep=*/true);
  out_.events.push_back(
      {.kind = kind, .raw_begin_ns = since_raw_ns, .raw_end_ns = out_.snapshots.back().raw_end_ns});
}

std::function<uint64_t()> MakeProcessorWait() {
  return [file = std::make_shared<UniqueFd>()]() -> uint64_t {
    // Opened by the first call, on the thread that is measured: thread-self is the one that opens
    // it.
    if (!file->valid()) {
      *file = UniqueFd(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
    }
    // "ran waited slices": ns, ns, a count.
    char text[128];
    const ssize_t bytes = pread(file->get(), text, sizeof(text), 0);
    const char* const end = text + std::max<ssize_t>(bytes, 0);
    uint64_t ran_ns = 0;
    uint64_t waited_ns = 0;
    const auto [space, error] = std::from_chars(text, end, ran_ns);
    if (error != std::errc() || space == end) return 0;
    std::from_chars(space + 1, end, waited_ns);
    return waited_ns;
  };
}

}  // namespace neurontrace
