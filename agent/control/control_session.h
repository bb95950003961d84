// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/control_stream.h"
#include "agent/source/source.h"
#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Reports that wait to be sent, at most one for each thing they are about: a newer one takes the
// place of an older one that has not been sent, at its place in line (a CaptureAgentStatus at the
// end of it). So a slow connection costs news, never memory: there are as many as there are workers
// and their captures. A plain value.
class PendingReports {
 public:
  void Put(AgentReport report);
  // The longest waiting, which is then no longer here.
  std::optional<AgentReport> Take();
  // All but triggers that have fired: those cannot be told again by who told them.
  void ClearButTriggers();
  // Triggers that fired before that time: they would record what is over.
  void ForgetTriggersBefore(uint64_t host_realtime_ns);
  void ForgetCapture(const CaptureId& capture_id);
  size_t size() const { return reports_.size(); }

 private:
  // What a report is about: kind, worker, capture, rule of a trigger (or none of each).
  struct Topic {
    size_t kind = 0;
    WorkerIdentity worker;
    CaptureId capture_id;
    bool framework = false;
    std::string rule;
    friend auto operator<=>(const Topic&, const Topic&) = default;
  };
  static Topic TopicOf(const AgentReport& report);

  std::map<Topic, AgentReport> reports_;
  std::deque<Topic> line_;  // each topic of reports_ once, and some that are gone
};

// The agent's side of the control call: says who it is and what workers there are, has every source
// carry out the aggregator's orders, and reports their results. Keeps trying to reach the
// aggregator for as long as it lives; sources go on meanwhile, and on each new connection all is
// told again. Orders are idempotent, and a capture that a welcome does not list is over. Lives on
// the agent's sequence.
class ControlSession final : public ControlStream::Listener, public SourceListener {
 public:
  // Who else has to know; called on the sequence.
  struct Hooks {
    // Captures are settled, these go on: chunks may go up.
    std::function<void(const std::set<CaptureId>& captures)> on_welcome;
    std::function<void()> on_lost;  // the connection is gone
    // Anything but OK: this aggregator is not the one that the agent works for. The call is ended,
    // and begun again later; nothing of what it said has happened.
    std::function<absl::Status(const std::string& aggregator_id)> check_aggregator;
    // True if what was resumed of the capture without asking was wrong: it is begun again.
    std::function<bool(const CaptureResume&)> was_wrong;
    // The capture runs here from now on.
    std::function<void(const CaptureId&, const CaptureSpec&)> on_running;
    // What Records says of some capture is another thing now.
    std::function<void()> on_recording;
    // It is to end: what is not recorded by now will not be.
    std::function<void()> on_capture_stopping;
    // Nothing more of it is wanted, or everything of it is delivered.
    std::function<void(const CaptureId&)> on_capture_over;
    // Before sources hear where the streams of a capture stand: adds what this node itself keeps.
    std::function<void(CaptureResume&)> on_resume;
    // True once nothing of the capture is on its way any more; null: sources know it all.
    std::function<bool(const CaptureId&)> is_delivered;
    // These rules take the place of all before.
    std::function<void(const std::vector<TriggerRule>& rules, uint64_t version)> on_triggers;
  };
  struct Counters {
    uint64_t calls = 0;
    uint64_t reports_sent = 0;
    uint64_t orders = 0;
    uint64_t aggregators_refused = 0;  // welcomes of one that is not the agent's
    uint64_t workers_refused = 0;      // beyond limits::kWorkersPerAgentMax: not told
  };

  // All references outlive the session.
  ControlSession(AgentInfo info, ControlConnector connector, const Clock& clock, TaskRunner& runner,
                 Random& random, Hooks hooks);
  ~ControlSession() override;

  // Sources outlive the session, or its Stop. They are added before Start.
  void AddSource(Source& source) { sources_.push_back(&source); }
  void Start();
  // How long to wait after Start for the first welcome before GoOn.
  static constexpr uint64_t kGoOnAloneAfterNs = 2'000'000'000;
  // Before the first welcome: a capture that the agent before this one ran continues until the
  // aggregator says its outcome.
  void GoOn(const CaptureResume& resume);
  // Ends the call; nothing is reported any more.
  void Stop();
  // A trigger has fired. Without an aggregator nothing comes of it: false. Else it is told, over a
  // new connection if this one breaks, unless that takes longer than limits::kTriggerStaleNs.
  bool ReportTrigger(const TriggerFired& fired);

  bool welcomed() const { return welcomed_; }
  size_t captures() const { return captures_.size(); }
  // Whether a worker of this node records in it now, or a framework's trace file is read for it.
  bool Records(const CaptureId& capture_id) const {
    const auto it = captures_.find(capture_id);
    return it != captures_.end() && it->second.recording > 0;
  }
  const Counters& counters() const { return counters_; }

  // Workers at hand, as the aggregator was told about them or will be.
  const std::map<WorkerIdentity, WorkerInfo>& workers() const { return workers_; }
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

  // Workers that have a part in it on this node, or had.
  std::vector<WorkerIdentity> WorkersOf(const CaptureId& capture_id) const {
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
  void OnClosed(const absl::Status& status) override;

 private:
  struct Capture {
    bool stopping = false;
    bool unconfirmed = false;   // continues from an earlier run; the aggregator has not said so
    bool finished = false;      // and said so
    bool ends_itself = false;   // a snapshot that was cut
    bool by_execution = false;  // how far its cores are is told at once
    size_t recording = 0;       // of its workers, as Records has it
    CaptureMode mode = CaptureMode::kStream;
    uint64_t sources_finished_ns = 0;  // monotonic, when they first said so; 0: not yet
    std::map<std::pair<WorkerIdentity, bool>, CaptureWorkerStatus> workers;
    std::set<std::pair<WorkerIdentity, bool>> changed;  // since they were last reported
  };

  // What reads trace files says so of itself before there is one.
  static bool IsRecording(const CaptureWorkerStatus& status) {
    return status.state == CaptureWorkerState::kRecording &&
           (!status.framework || status.streams > 0);
  }
  void Connect();
  void Disconnected();
  bool Refuses(const Welcome& welcome);
  void StartCapture(const CaptureResume& resume);
  void ResumeStopping(const CaptureResume& resume);
  void TellSources(const CaptureResume& resume);
  void Apply(const SourceOrder& order);  // by every source
  void StopCapture(const CaptureId& capture_id, uint64_t host_raw_ns);
  void ForgetCapture(const CaptureId& capture_id);
  void ForgetOldestFinished();
  size_t unfinished() const;
  void Tick();
  bool IsFinished(const CaptureId& capture_id, Capture& capture) const;
  void ReportCapture(const CaptureId& capture_id, Capture& capture, bool all);
  void Report(AgentReport report);
  void ForgetStaleTriggers();
  void Pump();
  void After(uint64_t delay_ns, std::function<void()> task);  // unless destroyed by then

  const AgentInfo info_;
  const ControlConnector connector_;
  const Clock& clock_;
  TaskRunner& runner_;
  const Hooks hooks_;
  Backoff backoff_;
  std::vector<Source*> sources_;

  std::unique_ptr<ControlStream> stream_;
  bool running_ = false;
  bool welcomed_ = false;
  bool writing_ = false;
  uint64_t connected_ns_ = 0;  // monotonic
  uint64_t heartbeat_ns_ = 0;  // of the last one
  uint64_t progress_ns_ = 0;   // of the last progress reports
  PendingReports pending_;
  std::optional<TriggerFired> trigger_on_its_way_;  // being written
  std::map<WorkerIdentity, WorkerInfo> workers_;
  std::map<CaptureId, Capture> captures_;
  Counters counters_;
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
