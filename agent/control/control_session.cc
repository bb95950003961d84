// SPDX-License-Identifier: Apache-2.0
#include "agent/control/control_session.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "lib/trace/limits.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

// The bounds of the growing delay between two calls.
constexpr uint64_t kReconnectFirstNs = 100'000'000;
constexpr uint64_t kReconnectLongestNs = 10'000'000'000;
// A call may be open to something that accepts connections and never answers.
constexpr uint64_t kWelcomeWaitNs = 10'000'000'000;
constexpr uint64_t kTickNs = 50'000'000;       // how soon the end of a capture is noticed
constexpr uint64_t kProgressNs = 500'000'000;  // between reports of a capture that continues
constexpr uint64_t kHeartbeatNs = 2'000'000'000;
// How long IsFinished waits for the final state of workers once every chunk is delivered.
constexpr uint64_t kFinalReportsTimeoutNs = 2'000'000'000;
// Finished captures are kept so that a repeated order finds them finished.
constexpr size_t kFinishedCapturesMax = 64;
// The statuses that are kept of one capture, including those of workers that have ended.
constexpr size_t kWorkersPerCaptureMax = 4 * limits::kWorkersPerAgentMax;

// Returns whether a worker in this state has nothing more to report for its capture.
bool IsFinal(CaptureWorkerState state) {
  return state == CaptureWorkerState::kComplete || state == CaptureWorkerState::kRefused ||
         state == CaptureWorkerState::kLost;
}

// Snapshots, previews and captures by execution cannot continue without the aggregator, since only
// it knows which events belong to them (those before a cut, those from an execution on). Their
// records wait in the taps.
bool CanResumeOffline(const CaptureSpec& spec) {
  return spec.mode != CaptureMode::kSnapshot && spec.mode != CaptureMode::kPreview &&
         !spec.conditions.by_execution();
}

}  // namespace

ControlSession::ControlSession(AgentInfo info, ControlConnector connector, const Clock& clock,
                               TaskRunner& runner, Random& random, ControlObserver& observer)
    : info_(std::move(info)),
      connector_(std::move(connector)),
      clock_(clock),
      runner_(runner),
      observer_(observer),
      backoff_(random, kReconnectFirstNs, kReconnectLongestNs) {}

ControlSession::~ControlSession() = default;

void ControlSession::Start() {
  running_ = true;
  Connect();
  Tick();
}

void ControlSession::Stop() {
  running_ = false;
  stream_.reset();
  welcomed_ = false;
}

// AgentInfo is the first report of a call. All others wait for the welcome, since the aggregator
// may refuse the agent or be refused by it.
void ControlSession::Connect() {
  if (!running_ || stream_ != nullptr) return;
  ++counters_.calls;
  connected_ns_ = clock_.MonotonicNs();
  // On the new connection OnWelcome reports everything from the current state.
  pending_.ClearButTriggers();
  stream_ = connector_(*this);
  writing_ = true;
  ++counters_.reports_sent;
  stream_->Send(info_);
}

void ControlSession::OnClosed(const absl::Status& status) {
  spdlog::info("control: lost the connection to the aggregator: {}", status.ToString());
  Disconnected();
}

void ControlSession::Disconnected() {
  stream_.reset();
  writing_ = false;
  if (trigger_in_flight_) pending_.Put(*std::exchange(trigger_in_flight_, std::nullopt));
  const bool was_welcomed = std::exchange(welcomed_, false);
  if (was_welcomed) observer_.OnConnectionLost();
  After(backoff_.NextDelayNs(), [this] { Connect(); });
}

// The call is ended by a task, as a stream must not be destroyed inside its own callback. By then
// another call may be open, which the number of calls tells.
bool ControlSession::Refuses(const Welcome& welcome) {
  const absl::Status status = observer_.CheckAggregator(welcome.aggregator_id);
  if (status.ok()) return false;
  ++counters_.aggregators_refused;
  spdlog::error("control: {}", std::string(status.message()));
  After(0, [this, call = counters_.calls] {
    if (stream_ != nullptr && call == counters_.calls) Disconnected();
  });
  return true;
}

void ControlSession::Resume(const CaptureResume& resume) {
  if (!CanResumeOffline(resume.spec)) return;
  spdlog::info("control: capture {} continues", resume.capture_id.ToString());
  AddCapture(resume).unconfirmed = true;
  Apply(SourceOrder::Continue(resume.capture_id, resume.spec, resume.cursors));
}

// --- Orders --------------------------------------------------------------------------------------

void ControlSession::OnWelcome(const Welcome& welcome) {
  ++counters_.orders;
  if (Refuses(welcome)) return;
  spdlog::info("control: accepted by aggregator {} (version {}), {} captures continue",
               welcome.aggregator_id, welcome.aggregator_version, welcome.captures.size());
  std::set<CaptureId> listed;
  for (const CaptureResume& resume : welcome.captures) listed.insert(resume.capture_id);
  // Collected first, since ForgetCapture changes the map.
  std::vector<CaptureId> over;
  // What is not listed ended while this agent was away. This comes first, so that limits count only
  // captures that are alive.
  for (const auto& [capture_id, capture] : captures_) {
    if (!listed.contains(capture_id)) over.push_back(capture_id);
  }
  for (const CaptureId& capture_id : over) ForgetCapture(capture_id);

  // From here on reports are queued and written.
  welcomed_ = true;
  ForgetStaleTriggers();
  Pump();
  backoff_.Reset();
  for (const auto& [identity, worker] : workers_) Report(worker);
  for (CaptureResume resume : welcome.captures) {
    if (observer_.WasWronglyResumed(resume)) ForgetCapture(resume.capture_id);
    observer_.AddSpoolCursors(resume);
    // A snapshot ends by itself, once what was cut is delivered.
    const bool is_cut = resume.spec.mode == CaptureMode::kSnapshot && resume.begin;
    if (resume.stopping && !is_cut) {
      ResumeStopping(resume);
    } else {
      StartCapture(resume);
    }
  }
  // Only now, as sources stop what records captures that nobody named.
  for (Source* source : sources_) source->OnCaptureListComplete();
  for (auto& [capture_id, capture] : captures_) ReportCapture(capture_id, capture, true);
  // Last: uploads start with cursors that all sources know by now.
  observer_.OnWelcome(listed);
}

void ControlSession::OnStartCapture(const CaptureResume& capture) {
  ++counters_.orders;
  spdlog::info("control: capture {} {}", capture.capture_id.ToString(),
               capture.arm ? "is armed" : "starts");
  StartCapture(capture);
}

void ControlSession::OnBeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) {
  ++counters_.orders;
  const auto it = captures_.find(capture_id);
  if (it == captures_.end() || it->second.finished) return;
  spdlog::info("control: capture {} starts", capture_id.ToString());
  it->second.ends_itself = it->second.mode == CaptureMode::kSnapshot;
  Apply(SourceOrder::Begin(capture_id, begin));
}

void ControlSession::OnStopCapture(const CaptureId& capture_id, uint64_t host_raw_ns) {
  ++counters_.orders;
  spdlog::info("control: capture {} stops", capture_id.ToString());
  StopCapture(capture_id, host_raw_ns);
}

void ControlSession::OnSetTriggers(const std::vector<TriggerRule>& rules, uint64_t version) {
  ++counters_.orders;
  observer_.OnTriggers(rules, version);
}

void ControlSession::OnCollectStacks(const StacksOrder& order) {
  ++counters_.orders;
  observer_.OnCollectStacks(order);
}

ControlSession::Capture& ControlSession::AddCapture(const CaptureResume& resume) {
  Capture& capture = captures_[resume.capture_id];
  capture.mode = resume.spec.mode;
  capture.by_execution = resume.spec.conditions.by_execution();
  return capture;
}

void ControlSession::StartCapture(const CaptureResume& resume) {
  if (!captures_.contains(resume.capture_id) && unfinished() >= limits::kCapturesRunningMax) {
    spdlog::warn("control: capture {} is not started: {} captures are already running",
                 resume.capture_id.ToString(), limits::kCapturesRunningMax);
    return;
  }
  Capture& capture = AddCapture(resume);
  // The report that it is finished was lost and is sent again; the sources have already let go of
  // it.
  if (capture.finished) return;
  capture.unconfirmed = false;
  if (CanResumeOffline(resume.spec)) observer_.OnCaptureRunning(resume.capture_id, resume.spec);
  NotifySources(resume);
  ReportCapture(resume.capture_id, capture, false);
}

// A capture that has begun is joined, one that is armed elsewhere is armed, and any other starts
// now.
void ControlSession::NotifySources(const CaptureResume& resume) {
  const CaptureId& id = resume.capture_id;
  if (resume.begin) {
    Apply(SourceOrder::Join(id, resume.spec, resume.cursors, *resume.begin));
    captures_[id].ends_itself = resume.spec.mode == CaptureMode::kSnapshot;
  } else if (resume.arm) {
    Apply(SourceOrder::Arm(id, resume.spec, resume.cursors));
  } else {
    Apply(SourceOrder::Start(id, resume.spec, resume.cursors));
  }
}

void ControlSession::Apply(const SourceOrder& order) {
  for (Source* source : sources_) source->ApplyOrder(order);
}

// A confirmed capture is stopped as usual. Of any other one only what an earlier run of this agent
// began is finished; Stop follows in either case, so that Tick reports its end.
void ControlSession::ResumeStopping(const CaptureResume& resume) {
  const auto known = captures_.find(resume.capture_id);
  if (known != captures_.end() && !known->second.unconfirmed) {
    StartCapture(resume);  // it takes note of the cursors
  } else {
    AddCapture(resume).unconfirmed = false;
    if (CanResumeOffline(resume.spec)) observer_.OnCaptureRunning(resume.capture_id, resume.spec);
    Apply(SourceOrder::Finish(resume.capture_id, resume.spec, resume.cursors, resume.begin));
  }
  StopCapture(resume.capture_id, 0);
}

void ControlSession::StopCapture(const CaptureId& capture_id, uint64_t host_raw_ns) {
  // A capture that was never started here has nothing to stop; this entry makes Tick report it as
  // finished.
  Capture& capture = captures_[capture_id];
  capture.stopping = true;
  for (Source* source : sources_) source->Stop(capture_id, host_raw_ns);
  observer_.OnCaptureStopping();
}

void ControlSession::ForgetCapture(const CaptureId& capture_id) {
  spdlog::info("control: capture {} has ended", capture_id.ToString());
  for (Source* source : sources_) source->Forget(capture_id);
  captures_.erase(capture_id);
  pending_.ForgetCapture(capture_id);
  observer_.OnCaptureOver(capture_id);
}

size_t ControlSession::unfinished() const {
  return static_cast<size_t>(std::count_if(captures_.begin(), captures_.end(),
                                           [](const auto& item) { return !item.second.finished; }));
}

void ControlSession::ForgetOldestFinished() {
  size_t finished = captures_.size() - unfinished();
  // In the order of capture ids, which sort by time, so the oldest go first.
  std::erase_if(captures_, [&finished](const auto& item) {
    return item.second.finished && finished-- > kFinishedCapturesMax;
  });
}

// --- Reports of sources --------------------------------------------------------------------------

void ControlSession::OnWorker(const WorkerInfo& worker) {
  if (workers_.size() >= limits::kWorkersPerAgentMax && !workers_.contains(worker.identity)) {
    ++counters_.workers_refused;
    return;
  }
  workers_[worker.identity] = worker;
  Report(worker);
}

void ControlSession::OnWorkerGone(const WorkerIdentity& worker) {
  if (workers_.erase(worker) != 0) Report(WorkerGone{worker});
}

void ControlSession::OnCaptureWorker(const CaptureWorkerStatus& status) {
  const auto it = captures_.find(status.capture_id);
  if (it == captures_.end()) return;
  Capture& capture = it->second;
  const std::pair key(status.worker, status.framework);
  // Workers that came and went during one capture add up.
  if (capture.workers.size() >= kWorkersPerCaptureMax && !capture.workers.contains(key)) {
    ++counters_.workers_refused;
    return;
  }
  CaptureWorkerStatus& known = capture.workers[key];
  const bool state_changed = known.state != status.state || known.detail != status.detail ||
                             known.obstacle != status.obstacle ||
                             known.begun_realtime_ns != status.begun_realtime_ns ||
                             (capture.by_execution && !HasSameExecutions(known, status));
  // The count of recording workers follows from the old and the new status.
  const bool recorded = capture.recording > 0;
  capture.recording -= IsRecording(known) ? 1 : 0;
  capture.recording += IsRecording(status) ? 1 : 0;
  known = status;
  capture.changed.insert(key);
  if (recorded != (capture.recording > 0)) observer_.OnRecordingChanged();
  // Counts can wait for the next progress report; changes of state are reported immediately.
  if (state_changed) {
    capture.changed.erase(key);
    Report(status);
  }
}

// --- Reports -------------------------------------------------------------------------------------

void ControlSession::Tick() {
  if (!running_) return;
  const uint64_t now = clock_.MonotonicNs();
  if (stream_ != nullptr && !welcomed_ && now - connected_ns_ > kWelcomeWaitNs) {
    spdlog::warn("control: no welcome from the aggregator within {} s",
                 kWelcomeWaitNs / 1'000'000'000);
    Disconnected();
  }
  // Progress is throttled, since every report of every worker passes through one aggregator.
  const bool progress = now - progress_ns_ >= kProgressNs;
  if (progress) progress_ns_ = now;
  for (auto& [capture_id, capture] : captures_) {
    if (capture.finished) continue;
    capture.finished = (capture.stopping || capture.ends_itself) && IsFinished(capture_id, capture);
    if (capture.finished) {
      spdlog::info("control: capture {} is finished on this agent", capture_id.ToString());
      for (Source* source : sources_) source->Forget(capture_id);
      observer_.OnCaptureOver(capture_id);
    }
    if (progress || capture.finished) ReportCapture(capture_id, capture, false);
  }
  ForgetOldestFinished();
  if (now - heartbeat_ns_ >= kHeartbeatNs) {
    heartbeat_ns_ = now;
    Report(Heartbeat{clock_.RealtimeNs()});
  }
  After(kTickNs, [this] { Tick(); });
}

bool ControlSession::IsFinished(const CaptureId& capture_id, Capture& capture) const {
  const bool sources_finished = std::all_of(sources_.begin(), sources_.end(), [&](Source* source) {
    return source->IsFinished(capture_id);
  });
  if (!sources_finished) return false;
  if (!observer_.IsDelivered(capture_id)) return false;
  // A source may have its last receipts before it reports how a worker ended. That is waited for,
  // but not for ever.
  const uint64_t now = clock_.MonotonicNs();
  if (capture.sources_finished_ns == 0) capture.sources_finished_ns = now;
  return now - capture.sources_finished_ns >= kFinalReportsTimeoutNs ||
         std::all_of(capture.workers.begin(), capture.workers.end(),
                     [](const auto& item) { return IsFinal(item.second.state); });
}

void ControlSession::ReportCapture(const CaptureId& capture_id, Capture& capture, bool all) {
  uint32_t matched = 0;
  for (const auto& [key, status] : capture.workers) {
    if (!status.framework) ++matched;
    if (all || capture.changed.contains(key)) Report(status);
  }
  capture.changed.clear();
  // After the workers: the aggregator asks nothing more once an agent reports that it is finished.
  Report(CaptureAgentStatus{capture_id, matched, capture.finished});
}

bool ControlSession::ReportTrigger(const TriggerFired& fired) {
  if (!welcomed_) return false;
  Report(fired);
  return true;
}

void ControlSession::Report(AgentReport report) {
  // Without a connection nothing is kept: everything is reported again on the next one.
  if (!welcomed_) return;
  pending_.Put(std::move(report));
  Pump();
}

// A trigger that fired while no aggregator was connected is reported by now or not at all.
void ControlSession::ForgetStaleTriggers() {
  const uint64_t now_ns = clock_.RealtimeNs();
  pending_.ForgetTriggersBefore(now_ns - std::min(now_ns, limits::kTriggerStaleNs));
}

void ControlSession::OnWritten() {
  writing_ = false;
  trigger_in_flight_.reset();
  Pump();
}

void ControlSession::Pump() {
  if (stream_ == nullptr || writing_ || !welcomed_) return;
  if (auto report = pending_.Take()) {
    writing_ = true;
    ++counters_.reports_sent;
    if (const auto* fired = std::get_if<TriggerFired>(&*report)) trigger_in_flight_ = *fired;
    stream_->Send(*report);
  }
}

void ControlSession::After(uint64_t delay_ns, std::function<void()> task) {
  runner_.PostDelayedTask(weak_tasks_.Wrap(std::move(task)), delay_ns);
}

}  // namespace neurontrace
