// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/control/control_observer.h"
#include "agent/control/control_stream.h"
#include "agent/control/pending_reports.h"
#include "agent/source/capture_participants.h"
#include "agent/source/source.h"
#include "agent/triggers/trigger_sink.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The agent's side of the control call: introduces the agent and its workers, passes the
// aggregator's orders to every source, and reports the results. Reconnects with a growing delay for
// as long as it runs; sources continue to record meanwhile, and everything is reported again on
// each new connection. Orders are idempotent, and a capture that a welcome does not list is over
// (docs/decisions/0012-captures-continue-without-the-aggregator.md).
//
// Nothing here fails towards a caller: what cannot be done is logged, counted or reported. Lives on
// the agent's sequence; all functions are called there.
class ControlSession final : public ControlStream::Listener,
                             public SourceListener,
                             public CaptureParticipants,
                             public TriggerSink {
 public:
  struct Counters {
    // Calls started, and reports written in them; each call begins with AgentInfo.
    uint64_t calls = 0;
    uint64_t reports_sent = 0;
    // Messages of the aggregator, welcomes included.
    uint64_t orders = 0;
    // Welcomes of an aggregator that the observer refused.
    uint64_t aggregators_refused = 0;
    // Reports of workers beyond limits::kWorkersPerAgentMax, or beyond four times that in one
    // capture. The aggregator does not learn of these workers.
    uint64_t workers_refused = 0;
  };

  // All references, and what `connector` refers to, outlive the session. The observer is called by
  // neither the constructor nor the destructor.
  ControlSession(AgentInfo info, ControlConnector connector, const Clock& clock, TaskRunner& runner,
                 Random& random, ControlObserver& observer);
  ~ControlSession() override;

  // Adds a source that every order goes to. To be called before Start; the source outlives the
  // session, or its Stop.
  void AddSource(Source& source) { sources_.push_back(&source); }
  // Connects, and starts the periodic work. Called once.
  void Start();
  // How long after Start the agent waits for the first welcome before it resumes captures by itself
  // (Resume). Taps hold more than two seconds of events, and an aggregator that is reached knows
  // better.
  static constexpr uint64_t kResumeOfflineAfterNs = 2'000'000'000;
  // Continues a capture that an earlier run of this agent took part in, before the first welcome.
  // The capture is unconfirmed until the aggregator lists it, or is forgotten if it does not. No
  // effect for captures whose events only the aggregator can tell apart.
  void Resume(const CaptureResume& resume);
  // Ends the call; nothing is reported from then on.
  void Stop();
  // TriggerSink. The report is sent, over a new connection if this one breaks, unless that takes
  // longer than limits::kTriggerStaleNs.
  bool ReportTrigger(const TriggerFired& fired) override;
  // Reports the stacks of a worker. Dropped without a connection: the aggregator reports the worker
  // as not answered.
  void ReportStacks(const WorkerStacks& stacks) { Report(stacks); }

  // Returns true while a call is open whose aggregator has accepted this agent.
  bool welcomed() const { return welcomed_; }
  // Returns the number of captures that are known here, including those that are finished.
  size_t captures() const { return captures_.size(); }
  // CaptureParticipants
  bool Records(const CaptureId& capture_id) const override {
    const auto it = captures_.find(capture_id);
    return it != captures_.end() && it->second.recording > 0;
  }
  const Counters& counters() const { return counters_; }

  // Returns the workers that were reported to the aggregator, or will be on the next connection.
  const std::map<WorkerIdentity, WorkerInfo>& workers() const { return workers_; }
  // One row of the status page.
  struct CaptureState {
    CaptureId id;
    CaptureMode mode = CaptureMode::kStream;
    bool stopping = false;
    bool finished = false;
    size_t recording = 0;  // workers
  };
  std::vector<CaptureState> CaptureStates() const {
    std::vector<CaptureState> states;
    for (const auto& [id, capture] : captures_) {
      states.push_back({id, capture.mode, capture.stopping, capture.finished, capture.recording});
    }
    return states;
  }

  // CaptureParticipants
  std::vector<WorkerIdentity> WorkersOf(const CaptureId& capture_id) const override {
    std::vector<WorkerIdentity> workers;
    const auto it = captures_.find(capture_id);
    if (it == captures_.end()) return workers;
    for (const auto& [of, status] : it->second.workers) workers.push_back(of.first);
    return workers;
  }

  // SourceListener
  void OnWorker(const WorkerInfo& worker) override;
  void OnWorkerGone(const WorkerIdentity& worker) override;
  void OnCaptureWorker(const CaptureWorkerStatus& status) override;

  // ControlStream::Listener
  void OnWritten() override;
  void OnWelcome(const Welcome& welcome) override;
  void OnStartCapture(const CaptureResume& capture) override;
  void OnBeginCapture(const CaptureId& capture_id, const CaptureBegin& begin) override;
  void OnStopCapture(const CaptureId& capture_id, uint64_t host_raw_ns) override;
  void OnSetTriggers(const std::vector<TriggerRule>& rules, uint64_t version) override;
  void OnCollectStacks(const StacksOrder& order) override;
  void OnClosed(const absl::Status& status) override;

 private:
  struct Capture {
    bool stopping = false;
    // Continues from an earlier run of the agent; the aggregator has not listed it yet.
    bool unconfirmed = false;
    // Finished and reported as such; the sources have forgotten it.
    bool finished = false;
    // True for a snapshot that was cut: it finishes without a stop.
    bool ends_itself = false;
    // Bounded by executions, so the progress of the cores is reported at once.
    bool by_execution = false;
    // How many of `workers` IsRecording is true for.
    size_t recording = 0;
    CaptureMode mode = CaptureMode::kStream;
    // When every source had finished and everything was delivered, monotonic; 0: not yet.
    uint64_t sources_finished_ns = 0;
    // The last status of each worker, and whether it is that of the worker's framework.
    std::map<std::pair<WorkerIdentity, bool>, CaptureWorkerStatus> workers;
    // Keys of `workers` whose counts changed since they were last reported.
    std::set<std::pair<WorkerIdentity, bool>> changed;
  };

  // Returns whether the status counts as recording. A reader of trace files reports kRecording
  // before there is any file, which does not count.
  static bool IsRecording(const CaptureWorkerStatus& status) {
    return status.state == CaptureWorkerState::kRecording &&
           (!status.framework || status.streams > 0);
  }
  // Starts a call, unless one is open or the session is stopped.
  void Connect();
  // Destroys the call, reports the loss to the observer, and schedules the next call.
  void Disconnected();
  // Returns true, and ends the call later, if the observer refuses its aggregator.
  bool Refuses(const Welcome& welcome);
  // Returns the capture, new or known, with the mode of its spec.
  Capture& AddCapture(const CaptureResume& resume);
  // Starts, arms or joins the capture; if it is known, the sources get the cursors. Ignored with a
  // warning beyond limits::kCapturesRunningMax.
  void StartCapture(const CaptureResume& resume);
  // Resumes a capture of the welcome that is to stop, as decided while this agent was away.
  void ResumeStopping(const CaptureResume& resume);
  void NotifySources(const CaptureResume& resume);
  // Gives the order to every source.
  void Apply(const SourceOrder& order);
  void StopCapture(const CaptureId& capture_id, uint64_t host_raw_ns);
  // Discards the capture here and in every source: the aggregator no longer wants it.
  void ForgetCapture(const CaptureId& capture_id);
  void ForgetOldestFinished();
  // Returns the number of captures that are not finished.
  size_t unfinished() const;
  // Finds, every 50 ms, captures that have finished, sends progress reports and heartbeats, and
  // gives up on an aggregator that does not send a welcome.
  void Tick();
  // Returns whether the sources have finished the capture, everything is delivered, and each worker
  // has reported its final state or had kFinalReportsTimeoutNs to do so.
  bool IsFinished(const CaptureId& capture_id, Capture& capture) const;
  // Reports the workers that changed, or `all`, then the agent's own status.
  void ReportCapture(const CaptureId& capture_id, Capture& capture, bool all);
  // Queues the report, and writes it as soon as the stream is free. Without a welcome it is
  // dropped.
  void Report(AgentReport report);
  void ForgetStaleTriggers();
  // Writes the next report if the stream can take one.
  void Pump();
  // Runs the task on the sequence after the delay, unless the session is destroyed by then.
  void After(uint64_t delay_ns, std::function<void()> task);

  const AgentInfo info_;
  const ControlConnector connector_;
  const Clock& clock_;
  TaskRunner& runner_;
  ControlObserver& observer_;
  Backoff backoff_;
  std::vector<Source*> sources_;

  // The open call; null between calls.
  std::unique_ptr<ControlStream> stream_;
  bool running_ = false;
  bool welcomed_ = false;
  // True while a report is being written: the stream takes one at a time.
  bool writing_ = false;
  uint64_t connected_ns_ = 0;  // monotonic
  // When the last heartbeat and the last progress reports were sent, monotonic.
  uint64_t heartbeat_ns_ = 0;
  uint64_t progress_ns_ = 0;
  PendingReports pending_;
  // The fired trigger that is being written. It is queued again if the call ends before that.
  std::optional<TriggerFired> trigger_in_flight_;
  std::map<WorkerIdentity, WorkerInfo> workers_;
  std::map<CaptureId, Capture> captures_;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
