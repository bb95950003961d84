// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/snapshot_filter.h"

#include <algorithm>
#include <cmath>

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
bool SnapshotFilter::IsInformative(const ClockSnapshot& snapshot) const {
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
  if (IsInformative(snapshot)) {
    // A token bucket: a snapshot that carries information costs two, itself and the one before it.
    if (allowance_ >= 2) return Keep(snapshot, kept);
    ++dropped_;
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

}  // namespace neurontrace
