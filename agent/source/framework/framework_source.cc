// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/framework_source.h"

#include <algorithm>
#include <utility>
#include <vector>

// Two tasks drive everything: Work, which takes one step for each capture and posts itself while
// there is more, and Look, which lists the directory and reports what has changed.
namespace neurontrace {
namespace {

// Periods of the work on the agent's sequence; a share is one part in so many.
constexpr uint64_t kPollNs = 500'000'000;   // between two looks at the directory
constexpr uint64_t kPollShare = 20;         // a look takes at most one in so many parts of the time
constexpr uint64_t kReportNs = 50'000'000;  // between two looks at the result of the work
constexpr uint64_t kNoRoomNs = 10'000'000;  // while the queue has no room

}  // namespace

FrameworkSource::FrameworkSource(FrameworkFiles files, const Clock& clock, TaskRunner& runner,
                                 ChunkSink& sink, SourceListener& listener,
                                 AgentSourceMetrics& metrics,
                                 const CaptureParticipants& participants)
    : files_(std::move(files)),
      clock_(clock),
      runner_(runner),
      sink_(sink),
      listener_(listener),
      metrics_(metrics),
      participants_(participants) {}

FrameworkSource::~FrameworkSource() = default;

void FrameworkSource::ApplyOrder(const SourceOrder& order) {
  switch (order.kind) {
    case SourceOrder::Kind::kStart:
    case SourceOrder::Kind::kJoin:
      return Begin(order, false);
    case SourceOrder::Kind::kArm:
      return Arm(order);
    case SourceOrder::Kind::kBegin:
      return BeginArmed(order.capture_id, *order.begin);
    case SourceOrder::Kind::kFinish:
      return Begin(order, true);
    case SourceOrder::Kind::kContinue:
      return;
  }
}

// Flight recorders, snapshots cut from them, and previews have the runtime's events only.
bool FrameworkSource::Selects(const CaptureSpec& spec) const {
  if (files_.files.empty() && files_.directory.empty() && spec.filter.frameworks.empty()) {
    return false;
  }
  if (spec.mode != CaptureMode::kStream && spec.mode != CaptureMode::kContinuous) return false;
  const auto& instances = spec.selection.instance_ids;
  return spec.filter.include_framework &&
         (instances.empty() ||
          std::find(instances.begin(), instances.end(), files_.instance_id) != instances.end());
}

void FrameworkSource::Arm(const SourceOrder& order) {
  if (!Selects(order.spec) || captures_.contains(order.capture_id)) return;
  armed_.insert_or_assign(order.capture_id, order);
  ReportState(order.capture_id, CaptureWorkerState::kArmed, "");
}

// A begin without an arm is ignored: the capture is not known here or does not select this
// instance.
void FrameworkSource::BeginArmed(const CaptureId& capture_id, const CaptureBegin& begin) {
  const auto armed = armed_.find(capture_id);
  if (armed == armed_.end()) return;
  SourceOrder order = std::move(armed->second);
  order.begin = begin;
  Begin(order, false);
  ReportState(capture_id, CaptureWorkerState::kRecording, "no trace file yet");
}

// While there is no file whose status would say more.
void FrameworkSource::ReportState(const CaptureId& capture_id, CaptureWorkerState state,
                                  const char* detail) {
  CaptureWorkerStatus status{
      .capture_id = capture_id,
      .worker = {.instance_id = files_.instance_id, .boot_id = files_.boot_id},
      .state = state,
      .detail = detail,
      .framework = true};
  listener_.OnCaptureWorker(status);
  const auto capture = captures_.find(capture_id);
  if (capture != captures_.end()) capture->second.told = std::move(status);
}

void FrameworkSource::Begin(const SourceOrder& order, bool is_over) {
  armed_.erase(order.capture_id);
  if (!Selects(order.spec) || captures_.contains(order.capture_id)) return;
  std::vector<StreamCursor> own;
  for (const StreamCursor& cursor : order.cursors) {
    // Cursors of all sources come with an order.
    if (cursor.stream.kind == StreamKind::kFramework) own.push_back(cursor);
  }
  const FrameworkCapture::CaptureEnvironment capture_environment{files_, clock_, sink_, metrics_,
                                                                 shapes_};
  Capture& capture = captures_[order.capture_id];
  capture.files = std::make_unique<FrameworkCapture>(
      order.capture_id, capture_environment, own, is_over, is_over ? nullptr : MakeOnDemand(order));
  ScheduleWork();
  SchedulePoll();
}

// A capture that began while this agent was away begins in the past, when nobody can be asked any
// more; files of workers that an earlier run of the agent has asked are still recognised.
std::unique_ptr<OnDemandCapture> FrameworkSource::MakeOnDemand(const SourceOrder& order) const {
  if (order.spec.filter.frameworks.empty()) return nullptr;
  auto on_demand =
      std::make_unique<OnDemandCapture>(order.capture_id, order.spec, recorders_, participants_);
  on_demand->Begin(PlanMoment(order.begin ? order.begin->host_raw_ns : 0, ReadHostInstant()));
  return on_demand;
}

void FrameworkSource::Stop(const CaptureId& capture_id, uint64_t) {
  if (armed_.erase(capture_id) != 0) {
    ReportState(capture_id, CaptureWorkerState::kComplete, "stopped before it began");
  }
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return;
  // The files that are known by now are still read to their ends.
  it->second.files->Stop();
  ScheduleWork();
}

bool FrameworkSource::IsFinished(const CaptureId& capture_id) const {
  const auto it = captures_.find(capture_id);
  if (it == captures_.end()) return true;
  const Capture& capture = it->second;
  // A capture is kept until the listener has received its last state.
  return capture.files->finished() &&
         (capture.files->has_files() ? capture.told == capture.files->status()
                                     : capture.told.state != CaptureWorkerState::kRecording);
}

void FrameworkSource::Flush() {
  for (const auto& [capture_id, capture] : captures_) capture.files->Flush();
}

void FrameworkSource::Forget(const CaptureId& capture_id) {
  captures_.erase(capture_id);
  armed_.erase(capture_id);
}

// One step for each capture, then back to the sequence, so that large files do not hold up others.
void FrameworkSource::Work() {
  work_scheduled_ = false;
  bool worked = false;
  bool waits = false;
  for (auto& [capture_id, capture] : captures_) {
    // Back-pressure: a file waits where it is.
    if (sink_.HasRoom(capture_id)) {
      worked = capture.files->Step() || worked;
    } else {
      waits = true;
    }
  }
  if (waits) AgentSourceMetrics::Add(metrics_.reads_waiting);
  if (worked) return ScheduleWork();
  if (waits) {
    work_scheduled_ = true;
    // Polling, as the queue does not announce room.
    After(kNoRoomNs, &FrameworkSource::Work);
  }
}

void FrameworkSource::ScheduleWork() {
  if (std::exchange(work_scheduled_, true)) return;
  After(0, &FrameworkSource::Work);
}

void FrameworkSource::Poll() {
  poll_scheduled_ = false;
  if (captures_.empty()) return;
  const uint64_t now = clock_.MonotonicNs();
  // A directory on a slow volume is listed less often, so that listing takes at most a twentieth of
  // the time of the agent's sequence.
  const bool at_directory = now - polled_ns_ >= std::max(kPollNs, kPollShare * poll_duration_ns_);
  for (auto& [capture_id, capture] : captures_) {
    if (at_directory) capture.files->Poll();
    Report(capture);
  }
  if (at_directory) {
    polled_ns_ = now;
    poll_duration_ns_ = clock_.MonotonicNs() - now;
    ScheduleWork();
  }
  SchedulePoll();
}

void FrameworkSource::SchedulePoll() {
  if (std::exchange(poll_scheduled_, true)) return;
  After(kReportNs, &FrameworkSource::Poll);
}

void FrameworkSource::Report(Capture& capture) {
  // A capture without files reports only its beginning and its end.
  if (!capture.files->has_files()) {
    // It was reported as taking part, so its end is reported too.
    if (capture.told.state == CaptureWorkerState::kRecording && capture.files->finished()) {
      ReportState(capture.told.capture_id, CaptureWorkerState::kComplete, "no trace file appeared");
    }
    return;
  }
  CaptureWorkerStatus status = capture.files->status();
  if (status == capture.told) return;
  capture.told = std::move(status);
  listener_.OnCaptureWorker(capture.told);
}

void FrameworkSource::After(uint64_t delay_ns, void (FrameworkSource::*task)()) {
  auto run = weak_tasks_.Wrap([this, task] { (this->*task)(); });
  if (delay_ns == 0) {
    runner_.PostTask(std::move(run));
  } else {
    runner_.PostDelayedTask(std::move(run), delay_ns);
  }
}

}  // namespace neurontrace
