// SPDX-License-Identifier: Apache-2.0
// The part of TapSource that carries out orders: which workers take part in which capture, and
// when.
#include <algorithm>

#include "agent/source/neuron/tap_source.h"

namespace neurontrace {
namespace {

constexpr uint64_t kExecutionsNs = 100'000'000;  // between reports of how far cores are
constexpr uint64_t kTapsFirstNs = 10'000'000;  // behind a moment at which taps begin by themselves

}  // namespace

void TapSource::ArmCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                           std::span<const StreamCursor> cursors) {
  if (!spec.include_neuron) return;
  const bool is_new = !captures_.contains(capture_id);
  Capture& capture = AddCapture(capture_id, spec, cursors);
  // What an agent goes on with by itself may have been armed and no more when the one before it was
  // killed.
  if (!capture.stopping && (is_new || capture.unconfirmed)) capture.arming = true;
  capture.unconfirmed = false;
  if (!capture.stopping) JoinAll(capture, false);
}

void TapSource::SetMoment(Capture& capture, const CaptureBegin& begin, bool joins) {
  if (capture.moment) return;
  const HostInstant now = options_.read_host_instant();
  capture.moment = PlanMoment(begin.host_raw_ns, now);
  if (joins && !capture.moment->named && capture.plan.spec.mode == CaptureMode::kSnapshot) {
    // Where its cut lies on this host's clocks is not known, but that it is over: nothing newer may
    // be taken for it.
    capture.moment->monotonic_ns = 0;
    capture.moment->realtime_ns = begin.reference_ns;
  }
  // Taps wait by themselves. The agent leaves the processors to those that begin, and looks later
  // for one that may have come meanwhile.
  if (capture.moment->monotonic_ns > now.monotonic_ns) {
    After(capture.moment->monotonic_ns - now.monotonic_ns + kTapsFirstNs, &TapSource::TellTaps);
  }
}

void TapSource::BeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return;
  Capture& capture = found->second;
  capture.executions = {begin.first_execution, begin.last_execution};
  SetMoment(capture, begin, false);
  capture.arming = false;
  if (capture.stopping) return;
  JoinAll(capture, false);
}

void TapSource::JoinCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                            std::span<const StreamCursor> cursors, const CaptureBegin& begin) {
  if (!spec.include_neuron) return;
  Capture& capture = AddCapture(capture_id, spec, cursors);
  capture.unconfirmed = false;
  capture.executions = {begin.first_execution, begin.last_execution};
  SetMoment(capture, begin, true);
  capture.arming = false;
  if (!capture.stopping) JoinAll(capture, true);
}

void TapSource::StartCapture(const CaptureId& capture_id, const CaptureSpec& spec,
                             std::span<const StreamCursor> cursors) {
  if (!spec.include_neuron) return;
  Capture& capture = AddCapture(capture_id, spec, cursors);
  capture.unconfirmed = false;
  capture.arming = false;
  if (!capture.moment) capture.moment = PlanMoment(0, options_.read_host_instant());
  if (!capture.stopping) JoinAll(capture, false);
}

void TapSource::GoOn(const CaptureId& capture_id, const CaptureSpec& spec,
                     std::span<const StreamCursor> cursors) {
  if (!spec.include_neuron) return;
  Capture& capture = AddCapture(capture_id, spec, cursors);
  capture.unconfirmed = true;
  JoinAll(capture, false);
}

void TapSource::ResumeStopping(const CaptureId& capture_id, const CaptureSpec& spec,
                               std::span<const StreamCursor> cursors,
                               const std::optional<CaptureBegin>& begin) {
  if (!spec.include_neuron) return;
  Capture& capture = AddCapture(capture_id, spec, cursors);
  capture.unconfirmed = false;
  if (capture.stopping) return;
  if (begin) capture.executions = {begin->first_execution, begin->last_execution};
  capture.stopping = true;
  JoinAll(capture, false);
  EndOrphans(capture);
}

void TapSource::JoinAll(Capture& capture, bool late) {
  for (const auto& worker : workers_) JoinIfMatching(*worker, capture, late);
  if (capture.plan.spec.by_execution() && !std::exchange(executions_scheduled_, true)) {
    After(kExecutionsNs, &TapSource::ReportExecutions);
  }
  ScheduleTurn(0);
}

void TapSource::JoinIfMatching(TapWorker& worker, Capture& capture, bool late) {
  const bool has_streams = std::any_of(
      capture.cursors.begin(), capture.cursors.end(),
      [&](const StreamCursor& cursor) { return cursor.stream.worker == worker.identity(); });
  const bool records_it = worker.tap_capture() == capture.plan.id;
  const bool is_new = !has_streams && !records_it && !worker.has(capture.plan.id);
  const bool begins_nothing = capture.stopping || capture.unconfirmed;
  if (is_new && (begins_nothing || !worker.Matches(capture.plan.spec))) return;
  worker.Join(capture.plan, capture.cursors,
              {.confirmed = !capture.unconfirmed,
               .arm = capture.arming,
               .moment = capture.moment,
               .late = late && !has_streams && !records_it,
               .executions = capture.executions});
  if (capture.stopping) worker.Stop(capture.plan.id);
}

// A worker whose job or ranks are known only now may be one that a capture selects.
void TapSource::JoinWhatChanged() {
  std::map<const TapWorker*, uint64_t> seen;
  for (const auto& worker : workers_) {
    const uint64_t version = worker->info_version();
    seen[worker.get()] = version;
    if (info_seen_[worker.get()] == version) continue;
    for (auto& [id, capture] : captures_) {
      if (!capture.stopping && !worker->has(id)) JoinIfMatching(*worker, capture, true);
    }
  }
  info_seen_ = std::move(seen);
}

void TapSource::TellTaps() {
  for (const auto& worker : workers_) worker->TellDue();
}

void TapSource::ReportExecutions() {
  bool any = false;
  for (const auto& worker : workers_) any = worker->ReportExecutions() || any;
  executions_scheduled_ = any;
  if (any) After(kExecutionsNs, &TapSource::ReportExecutions);
}

void TapSource::StopCapture(const CaptureId& capture_id) { StopCaptureAt(capture_id, 0); }

void TapSource::StopCaptureAt(const CaptureId& capture_id, uint64_t host_raw_ns) {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end() || found->second.stopping) return;
  found->second.stopping = true;
  const HostInstant now = options_.read_host_instant();
  const PlannedMoment moment = PlanMoment(host_raw_ns, now);
  const bool waits = moment.monotonic_ns > now.monotonic_ns;
  for (const auto& worker : workers_) worker->Stop(capture_id, waits ? moment.monotonic_ns : 0);
  if (waits) After(moment.monotonic_ns - now.monotonic_ns, &TapSource::TellTaps);
  EndOrphans(found->second);
  ScheduleTurn(0);
}

bool TapSource::CaptureFinished(const CaptureId& capture_id) const {
  const auto found = captures_.find(capture_id);
  if (found == captures_.end()) return true;
  const Capture& capture = found->second;
  const bool ends_itself = capture.plan.spec.mode == CaptureMode::kSnapshot && capture.moment;
  return (capture.stopping || ends_itself) && !capture.awaits_workers &&
         std::all_of(workers_.begin(), workers_.end(),
                     [&](const auto& worker) { return worker->CaptureFinished(capture_id); }) &&
         std::all_of(capture.orphans.begin(), capture.orphans.end(),
                     [](const auto& orphan) { return orphan->finished(); });
}

}  // namespace neurontrace
