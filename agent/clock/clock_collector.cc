// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/clock_collector.h"

#include <spdlog/spdlog.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/base/unique_fd.h"
#include "lib/trace/clock_evidence_codec.h"

// Older C libraries do not define this flag of <linux/timerfd.h>, which the kernel has since 3.0.
#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET (1 << 1)
#endif

namespace neurontrace {
namespace {

// Arms a timer that never expires: only its cancellation is of interest. Returns false, with errno
// set, if the kernel refuses.
bool Arm(int timer) {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();  // the kernel makes it its own end
  return timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr) == 0;
}

// Intervals in beats: between looks at the vmclock, questions about UTC, and batches.
constexpr uint64_t kTicksPerPoll = HostClockWatch::kTicksPerSnapshot;
constexpr uint64_t kTicksPerUtc = UtcSources::kIntervalNs / HostClockWatch::kTickNs;
constexpr uint64_t kTicksPerBatch = ClockCollector::kBatchNs / HostClockWatch::kTickNs;
// The first batches are sent early: a capture that starts right after the agent is aligned by them
// alone.
constexpr uint64_t kBatchesAtFirst = 4;
constexpr uint64_t kTicksPerFirstBatch = kTicksPerBatch / 4;
// Names of clock sources are short, such as "kvm-clock"; nothing beyond this is read.
constexpr size_t kClockSourceBytesMax = 64;

}  // namespace

// A timerfd (timerfd_create(2)) whose expirations call back on the sequence of `runner`, which
// outlives it. TaskRunner's delayed tasks would do for beats, but not for TFD_TIMER_CANCEL_ON_SET.
class ClockCollector::KernelTimer {
 public:
  KernelTimer(TaskRunner& runner, UniqueFd timer, std::function<void()> on_readable)
      : runner_(runner), timer_(std::move(timer)) {
    runner_.AddReadableWatch(timer_.get(), std::move(on_readable));
  }
  ~KernelTimer() { runner_.RemoveReadableWatch(timer_.get()); }
  KernelTimer(const KernelTimer&) = delete;
  KernelTimer& operator=(const KernelTimer&) = delete;

 private:
  TaskRunner& runner_;
  const UniqueFd timer_;
};

ClockCollector::ClockCollector(const Deps& deps, ClockPaths paths, Listener& listener)
    : deps_(deps),
      paths_(std::move(paths)),
      listener_(listener),
      watch_(deps.clocks, MakeProcessorWait(), batch_),
      utc_({deps.runner, deps.clocks, deps.files, deps.random}, paths_.utc, batch_) {}

ClockCollector::~ClockCollector() = default;

absl::Status ClockCollector::Start() {
  auto vm_clock = VmClock::Open(deps_.files, paths_.vm_clock);
  if (vm_clock.ok()) {
    spdlog::info("clock: {} reports migrations", paths_.vm_clock);
    vm_clock_ = *std::move(vm_clock);
  }
  if (const absl::Status status = WatchRealtime(); !status.ok()) {
    spdlog::warn("clock: steps of CLOCK_REALTIME are detected only between snapshots: {}",
                 status.ToString());
  }
  return StartTimer();
}

// Starts the periodic timer. Expirations that were missed are not made up for: a beat judges by the
// clock how late it is.
absl::Status ClockCollector::StartTimer() {
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return Unavailable("timerfd_create: {}", strerror(errno));
  const timespec interval{.tv_sec = static_cast<time_t>(HostClockWatch::kTickNs / kNsPerSecond),
                          .tv_nsec = static_cast<long>(HostClockWatch::kTickNs % kNsPerSecond)};
  const itimerspec times{.it_interval = interval, .it_value = interval};
  if (timerfd_settime(timer.get(), 0, &times, nullptr) != 0) {
    return Unavailable("timerfd_settime: {}", strerror(errno));
  }
  const int fd = timer.get();
  tick_timer_ = std::make_unique<KernelTimer>(deps_.runner, std::move(timer), [this, fd] {
    uint64_t ticks = 0;
    if (read(fd, &ticks, sizeof(ticks)) == sizeof(ticks)) OnTick();
  });
  return absl::OkStatus();
}

// Arms a timer at the end of time that the kernel cancels whenever somebody sets CLOCK_REALTIME, by
// whatever call (timerfd_create(2), TFD_TIMER_CANCEL_ON_SET). It needs no privilege and reports a
// step immediately, where a poll would only find it between two snapshots.
absl::Status ClockCollector::WatchRealtime() {
  UniqueFd timer(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid() || !Arm(timer.get())) {
    return Unavailable("cannot create a timer that reports steps of CLOCK_REALTIME: {}",
                       strerror(errno));
  }
  const int fd = timer.get();
  step_watch_ = std::make_unique<KernelTimer>(deps_.runner, std::move(timer), [this, fd] {
    uint64_t expirations = 0;
    if (read(fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED) return;
    Arm(fd);  // before the snapshot: a step during it is reported again
    OnRealtimeSet();
  });
  return absl::OkStatus();
}

void ClockCollector::OnTick() {
  // Before anything else: reading files and asking takes time, and would make the beat look late.
  watch_.OnTick();
  CountEvents();
  // Before UTC is asked, since a promise of ClockBound is compared with the marker.
  if (ticks_ % kTicksPerPoll == 0) ReadVmClock();
  if (ticks_ % kTicksPerUtc == 0) {
    ReadClockSource();
    utc_.Ask(marker_);
  }
  ++ticks_;
  listener_.OnTick();
  const uint64_t ticks = counters_.batches < kBatchesAtFirst ? kTicksPerFirstBatch : kTicksPerBatch;
  if (ticks_ - batch_tick_ >= ticks || CountClockEvidence(batch_) >= kBatchEntriesMax) Flush();
}

void ClockCollector::OnRealtimeSet() {
  watch_.OnRealtimeSet();
  CountEvents();
}

// Every snapshot may reveal a suspend, whatever it was taken for.
void ClockCollector::CountEvents() {
  bool broke = false;
  for (; events_counted_ < batch_.events.size(); ++events_counted_) {
    const ClockEvent& event = batch_.events[events_counted_];
    // A step of REALTIME leaves raw as it is.
    broke = broke || event.kind != ClockEventKind::kRealtimeStep;
    switch (event.kind) {
      case ClockEventKind::kPause:
        ++counters_.pauses;
        break;
      case ClockEventKind::kSuspend:
        ++counters_.suspends;
        break;
      case ClockEventKind::kRealtimeStep:
        ++counters_.realtime_steps;
        spdlog::info("clock: CLOCK_REALTIME was set, a step of {} ns", event.amount_ns);
        break;
      case ClockEventKind::kMigration:
        ++counters_.migrations;
        spdlog::info("clock: the hypervisor reports that the counter was disrupted");
        break;
      case ClockEventKind::kUnspecified:
        break;
      case ClockEventKind::kClockSource:
        ++counters_.clock_source_changes;
        break;
    }
  }
  if (broke) listener_.OnBreak();
}

// A marker that cannot be read at the moment leaves the last one, so that a later look finds the
// change.
void ClockCollector::ReadVmClock() {
  if (!vm_clock_) return;
  const std::optional<uint64_t> marker = vm_clock_->DisruptionMarker();
  if (!marker) return;
  if (marker_ && *marker != *marker_) {
    watch_.OnBreak(ClockEventKind::kMigration, marker_raw_ns_);
    CountEvents();
  }
  marker_ = marker;
  marker_raw_ns_ = watch_.raw_ns();
}

// Another counter has another rate and another origin, so what was measured against raw before the
// change does not hold after it.
void ClockCollector::ReadClockSource() {
  const auto file = deps_.files.OpenForReading(paths_.clock_source);
  if (!file.ok()) return;
  const auto name = (*file)->Read(0, kClockSourceBytesMax);
  if (!name.ok() || name->empty()) return;
  if (!clock_source_.empty() && *name != clock_source_) {
    watch_.OnBreak(ClockEventKind::kClockSource, clock_source_raw_ns_);
    CountEvents();
  }
  clock_source_ = *name;
  clock_source_raw_ns_ = watch_.raw_ns();
}

void ClockCollector::Add(const ClockExchange& exchange) {
  ++counters_.exchanges;
  batch_.exchanges.push_back(exchange);
}

void ClockCollector::FlushNow() {
  watch_.KeepSnapshot();
  CountEvents();
  Flush();
}

void ClockCollector::Flush() {
  // Also for an empty batch, so that the interval starts again.
  batch_tick_ = ticks_;
  if (CountClockEvidence(batch_) == 0) return;
  // Answers overtake each other, and events are reported when they end, while OnBatch promises
  // each list in order of raw.
  std::ranges::stable_sort(batch_.exchanges, {}, &ClockExchange::send_raw_ns);
  std::ranges::stable_sort(batch_.events, {}, &ClockEvent::raw_begin_ns);
  std::ranges::stable_sort(batch_.utc, {}, &UtcReading::raw_ns);
  ++counters_.batches;
  counters_.snapshots += batch_.snapshots.size();
  counters_.utc_readings += batch_.utc.size();
  events_counted_ = 0;
  listener_.OnBatch(std::exchange(batch_, {}));
}

}  // namespace neurontrace
