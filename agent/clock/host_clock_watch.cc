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

// Growth of BOOTTIME over MONOTONIC that is reported as a suspend: no machine sleeps for less.
constexpr int64_t kSuspendMinNs = 1'000'000;
// The kernel's own means slew REALTIME by at most 500 ppm, so less than this from one beat to the
// next. A smaller step is attributed to the last two readings.
constexpr int64_t kStepMinNs = 40'000;
// Covers the delay with which the kernel's notification of a step may be handled (1.6 s).
constexpr size_t kReadingsMax = 32;

}  // namespace

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
  ticks_to_snapshot_ = kTicksPerSnapshot;
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

void HostClockWatch::OnTick() {
  const ClockSnapshot now = clocks_.ReadOnce();
  const uint64_t last_ns = raw_ns();
  bool paused = false;
  if (last_ns != 0 && now.raw_begin_ns > last_ns + kTickNs + kLateMaxNs) {
    uint64_t late_ns = now.raw_begin_ns - last_ns - kTickNs;
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
  if (paused || --ticks_to_snapshot_ <= 0) return TakeSnapshot(paused);
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
