// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/clock_collector.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBeatsPerLook = HostClockWatch::kBeatsPerSnapshot;
constexpr uint64_t kBeatsPerUtc = UtcSources::kIntervalNs / HostClockWatch::kBeatNs;
constexpr uint64_t kBeatsPerBatch = ClockCollector::kBatchNs / HostClockWatch::kBeatNs;
// The first are worth most: who captures right after the start knows the clocks by them alone.
constexpr uint64_t kBatchesAtFirst = 4;
constexpr uint64_t kBeatsPerFirstBatch = kBeatsPerBatch / 4;
constexpr size_t kClockSourceBytesMax = 64;

size_t Entries(const ClockEvidence& evidence) {
  return evidence.snapshots.size() + evidence.exchanges.size() + evidence.events.size() +
         evidence.utc.size();
}

}  // namespace

ClockCollector::ClockCollector(const Deps& deps, ClockPaths paths, Hooks hooks)
    : deps_(deps),
      paths_(std::move(paths)),
      hooks_(std::move(hooks)),
      watch_(deps.clocks, MakeProcessorWait(), batch_),
      utc_({deps.runner, deps.clocks, deps.files, deps.random}, paths_.utc, batch_) {}

absl::Status ClockCollector::Start() {
  auto vm_clock = VmClock::Open(deps_.files, paths_.vm_clock);
  if (vm_clock.ok()) {
    spdlog::info("clock: {} tells of migrations", paths_.vm_clock);
    vm_clock_ = *std::move(vm_clock);
  }
  auto step_watch = RealtimeStepWatch::Start(deps_.runner, [this] { OnRealtimeSet(); });
  if (step_watch.ok()) {
    step_watch_ = *std::move(step_watch);
  } else {
    spdlog::warn("clock: steps of REALTIME are found between snapshots only: {}",
                 step_watch.status().ToString());
  }
  ASSIGN_OR_RETURN(beat_timer_,
                   BeatTimer::Start(deps_.runner, HostClockWatch::kBeatNs, [this] { Beat(); }));
  return absl::OkStatus();
}

void ClockCollector::Beat() {
  const size_t events = batch_.events.size();
  const bool broke = watch_.Beat();
  for (size_t i = events; i < batch_.events.size(); ++i) {
    ++(batch_.events[i].kind == ClockEventKind::kPause ? counters_.pauses : counters_.suspends);
  }
  if (broke) Broke();
  if (beats_ % kBeatsPerLook == 0) LookAtVmClock();
  if (beats_ % kBeatsPerUtc == 0) {
    LookAtClockSource();
    utc_.Ask(marker_);
  }
  ++beats_;
  if (hooks_.on_beat) hooks_.on_beat();
  const uint64_t beats = counters_.batches < kBatchesAtFirst ? kBeatsPerFirstBatch : kBeatsPerBatch;
  if (beats_ - batch_beat_ >= beats || Entries(batch_) >= kBatchEntriesMax) Flush();
}

void ClockCollector::Broke() {
  if (hooks_.on_break) hooks_.on_break();
}

void ClockCollector::OnRealtimeSet() {
  const size_t events = batch_.events.size();
  watch_.OnRealtimeSet();
  for (size_t i = events; i < batch_.events.size(); ++i) {
    const ClockEvent& event = batch_.events[i];
    if (event.kind != ClockEventKind::kRealtimeStep) {
      ++counters_.suspends;
      Broke();
      continue;
    }
    ++counters_.realtime_steps;
    spdlog::info("clock: REALTIME was set, {} ns ahead", event.amount_ns);
  }
}

void ClockCollector::LookAtVmClock() {
  if (!vm_clock_) return;
  const std::optional<uint64_t> marker = vm_clock_->DisruptionMarker();
  if (!marker) return;
  if (marker_ && *marker != *marker_) {
    spdlog::info("clock: the hypervisor says that the counter was disrupted");
    ++counters_.migrations;
    watch_.OnBreak(ClockEventKind::kMigration, marker_raw_ns_);
    Broke();
  }
  marker_ = marker;
  marker_raw_ns_ = watch_.raw_ns();
}

void ClockCollector::LookAtClockSource() {
  const auto file = deps_.files.OpenForReading(paths_.clock_source);
  if (!file.ok()) return;
  const auto name = (*file)->Read(0, kClockSourceBytesMax);
  if (!name.ok() || name->empty()) return;
  if (!clock_source_.empty() && *name != clock_source_) {
    ++counters_.clock_source_changes;
    watch_.OnBreak(ClockEventKind::kClockSource, clock_source_raw_ns_);
    Broke();
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
  Flush();
}

void ClockCollector::Flush() {
  batch_beat_ = beats_;
  if (Entries(batch_) == 0) return;
  // Answers overtake each other, and events are told when they end.
  std::ranges::stable_sort(batch_.exchanges, {}, &ClockExchange::send_raw_ns);
  std::ranges::stable_sort(batch_.events, {}, &ClockEvent::raw_begin_ns);
  std::ranges::stable_sort(batch_.utc, {}, &UtcReading::raw_ns);
  ++counters_.batches;
  counters_.snapshots += batch_.snapshots.size();
  counters_.utc_readings += batch_.utc.size();
  hooks_.on_batch(std::exchange(batch_, {}));
}

}  // namespace neurontrace
