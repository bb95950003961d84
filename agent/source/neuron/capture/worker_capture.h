// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/host_instant.h"
#include "agent/source/neuron/capture/capture_streams.h"
#include "agent/source/neuron/capture/held_rings.h"
#include "agent/source/neuron/capture/suspension_tracker.h"
#include "agent/source/neuron/capture/tap_orders.h"
#include "agent/source/neuron/capture/worker_capture_states.h"
#include "agent/source/neuron/capture/worker_fidelity.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "agent/source/source.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// A worker's tap as a capture sees it, at one moment.
struct TapView {
  // Null while the tap is not connected.
  TapSession* session = nullptr;
  TapState state = TapState::kNotInitialised;
  // The capture that the tap has been ordered to record; empty: none.
  CaptureId running;
  // The mode of `running`, where this agent knows that capture.
  std::optional<CaptureMode> running_mode;
  // Positions in the tap's ring: of the next record to be read, and what the tap claims to write
  // next.
  uint64_t read_position = 0;
  uint64_t write_position = 0;
  const WorkerFacts& facts;
};

// One worker's part in one capture: its streams, and the commands for its tap. Its progress is a
// WorkerPhase: each method below reports its event to the table of worker_capture_states.h and
// carries out the action that the table names (docs/developer/worker_states.md). Reports each
// change of state to the listener at once, and counts when asked to. Lives on the agent's sequence.
// Nothing fails: what prevents recording becomes the reported state with its obstacle.
class WorkerCapture {
 public:
  // The time after a command, or after the last record read since, at which the tap's answer is no
  // longer awaited.
  // A tap may collect for half a minute.
  static constexpr uint64_t kStopPatienceNs = 10'000'000'000;
  static constexpr uint64_t kCollectPatienceNs = 40'000'000'000;
  // A snapshot whose cut is older than this is refused: the rings contain other events by then.
  static constexpr uint64_t kCutAgeMaxNs = 60'000'000'000;

  // `capture_context` and `listener` must outlive it; `plan` is copied.
  WorkerCapture(const StreamSetup& capture_context, SourceListener& listener,
                const CapturePlan& plan, const WorkerIdentity& worker);

  CaptureStreams& streams() { return *streams_; }
  const CaptureStreams& streams() const { return *streams_; }
  const CapturePlan& plan() const { return plan_; }
  WorkerPhase phase() const { return phase_; }
  // Returns when the aggregator confirmed it, monotonic; the current time if it has not.
  uint64_t joined_ns() const { return confirmed_ns_.value_or(NowNs()); }
  // Returns the size of each core's ring in the runtime, as START asks for it.
  uint64_t ring_events() const;

  // Called when the aggregator wants the capture. The tap receives no command before that.
  void Confirm();
  // Called if the tap already records the capture, begun by a previous agent.
  void OnRunning();
  // Reports whether it could begin, and again whenever the tap's state changes, until it begins.
  void Arm(const TapView& tap);
  // Keeps the moment at which it begins, or is cut. `late`: it has begun elsewhere. Has an effect
  // once; TryStart follows. `rings` belongs to this worker and outlives the capture.
  void Begin(const PlannedMoment& moment, bool late, HeldRings& rings);
  // Sends what is due: a START, a COLLECT for a snapshot, or a STOP that could not be sent.
  void TryStart(const TapView& tap);
  // Sends a STOP for `stop_at_ns` (monotonic; 0: at once), and ends the streams when the tap has
  // answered.
  void Stop(TapSession* session, uint64_t stop_at_ns = 0);
  // Suspend a standing capture while `other` has the tap, and end that. Suspend is repeated while
  // `other` has the tap.
  void Suspend(const TapView& tap, const CaptureId& other);
  void EndSuspension();
  // Returns whether another capture has its tap.
  bool suspended() const { return IsSuspended(phase_); }
  // Returns whether it records, or would if the tap were free, and cannot share the tap.
  bool WantsTap() const;
  // Returns whether it has reported that it can begin, and waits for its moment.
  bool armed() const {
    return state_ == CaptureWorkerState::kArmed && IsActive(phase_) && !is_snapshot();
  }
  // Sends again over a new connection what the tap has to know, except START, for which TryStart
  // follows.
  void Reconnect(const TapView& tap);
  // Keeps it within its budget; `core_ns` is what the worker has cost so far. Called a few times a
  // second, between records.
  void Govern(const TapView& tap, uint64_t core_ns);
  // Returns the level in effect; nothing without a budget.
  std::optional<uint32_t> fidelity() const;
  // The tap's answers, and its reports of a new state.
  void OnStartAnswer(const TapReport& report);
  void OnStopAnswer(uint64_t write_position);
  void OnCollectAnswer(const TapReport& report, uint64_t write_position);
  void OnStateChange(const TapReport& report, const TapView& tap);

  // Continues the streams at the cursors. A stream that has not ended is taken to be recorded.
  void Resume(const std::vector<StreamCursor>& cursors);

  // Records of this capture. OnDocument is called before the rows of the document.
  void OnDocument();
  void OnTraceStarted(const TapRecord& record, const WorkerFacts& facts);
  void OnTraceStopped(const TapRecord& record);

  // Ends the streams when it is time, and closes old chunks. `position` is that of the next record;
  // `drained`: there is none yet.
  void Tick(uint64_t position, bool drained);
  void Flush(uint64_t position) { streams_->Flush(position); }
  // Ends the streams: the worker is gone. Adds a loss unless the worker said good-bye.
  void EndWithWorker(uint64_t position, bool sent_goodbye);
  void EndBecauseBroken(uint64_t position, const std::string& why);

  // Returns whether a trace of it was seen to run.
  bool has_recorded() const { return trace_ != TraceState::kUnseen; }
  bool ended() const { return phase_ == WorkerPhase::kEnded; }
  bool finished() const { return ended() && streams_->finished(); }
  void ReportCounts();

 private:
  // When it was to begin and did, as its status reports it.
  struct Beginning {
    // When it was to begin; nothing before it was ordered to.
    std::optional<PlannedMoment> moment;
    // It was ordered to begin after others had begun.
    bool late = false;
    // Something kept it from recording after it was ordered to begin.
    bool kept_off_since = false;
    // The next trace that begins is not its beginning, as an earlier one has run.
    bool was_unseen = false;
    // When its first trace began, realtime; 0: that was not seen.
    uint64_t realtime_ns = 0;
    void FillIn(CaptureWorkerStatus& status) const;
  };
  // The STOP that was ordered, and what follows if nothing of the capture was seen until then.
  struct StopOrder {
    // The phase in which the STOP was ordered.
    WorkerPhase phase_before = WorkerPhase::kJoined;
    // Whether its time to begin had come by then, and it was not suspended.
    bool was_to_begin = false;
    // When the tap is to stop, monotonic; 0: at once.
    uint64_t at_ns = 0;
  };

  // Moves to the phase that the table names; returns the action.
  WorkerAction Apply(WorkerEvent event);
  void Mark(TraceSign sign) { trace_ = NextTraceState(trace_, sign); }
  bool holds() const { return plan_.spec.mode == CaptureMode::kFlightRecorder; }
  bool is_snapshot() const { return plan_.spec.mode == CaptureMode::kSnapshot; }
  bool is_continuous() const { return plan_.spec.mode == CaptureMode::kContinuous; }
  bool is_tracing() const { return trace_ == TraceState::kRunning; }
  // Returns whether anything of it was seen, by this agent or by one before it.
  bool has_part() const { return has_recorded() || streams_->stream_count() > 0; }
  bool is_due() const { return beginning_.moment && NowNs() >= beginning_.moment->monotonic_ns; }
  bool is_ruled_out() const {
    return IsRuledOut(phase_) || (IsStopping(phase_) && IsRuledOut(stop_.phase_before));
  }
  uint32_t fidelity_level() const { return fidelity_ ? fidelity_->level() : 0; }
  uint64_t NowNs() const { return capture_context_.clock.MonotonicNs(); }

  // Reports a new state, detail or obstacle to the listener at once; the same one is reported once.
  void Enter(CaptureWorkerState state, std::string detail,
             CaptureObstacle obstacle = CaptureObstacle::kNone);
  // Reports what keeps the worker from recording. A worker that has recorded stays "recording": its
  // events are kept, and it may continue.
  void EnterStored(std::string detail, CaptureObstacle obstacle);
  void EnterStored(const TapReport& report);
  // Handles that the tap has its order and does not record yet: its time has not come, or something
  // prevents it.
  void EnterWaiting(const TapReport& report);
  // Reports that it stops, except for a worker that was refused.
  void EnterStopping(uint64_t stopped_ns);
  // Returns what prevents it from beginning on this tap, and describes it in `detail`.
  CaptureObstacle FindObstacle(const TapView& tap, std::string& detail) const;
  // Send the command if it is possible and due. What prevents a command becomes the reported state.
  void SendStart(const TapView& tap);
  void SendCollect(const TapView& tap);
  // Has the tap stop and start again, at the current level of fidelity.
  void RestartTrace(const TapView& tap);
  // Ends a snapshot that nothing was read of.
  void RefuseSnapshot(CaptureObstacle obstacle, std::string detail);
  CaptureWorkerStatus MakeStatus() const;
  // Ends the streams if the tap has not answered in time, with a loss if something was recorded.
  void EndIfUnanswered(uint64_t position, bool drained);
  void EndAtStop(uint64_t position);
  // Ends the streams at the position; has an effect once.
  void End(uint64_t position);
  // Records the reports of suspensions that are due.
  void AddSuspensions(uint64_t position, bool is_last);

  const StreamSetup& capture_context_;
  SourceListener& listener_;
  const CapturePlan plan_;
  const WorkerIdentity worker_;
  std::unique_ptr<CaptureStreams> streams_;
  std::optional<WorkerFidelity> fidelity_;  // with a budget

  WorkerPhase phase_ = WorkerPhase::kJoined;
  TraceState trace_ = TraceState::kUnseen;

  // What was last reported.
  CaptureWorkerState state_ = CaptureWorkerState::kUnspecified;
  CaptureObstacle obstacle_ = CaptureObstacle::kNone;
  std::string detail_;
  std::optional<CaptureWorkerStatus> reported_;

  // What goes with the phases.
  std::optional<uint64_t> confirmed_ns_;  // monotonic
  Beginning beginning_;
  // No START is sent before this time, monotonic.
  uint64_t next_start_ns_ = 0;
  // The capture that it was last suspended for.
  CaptureId suspended_for_;
  SuspensionTracker suspensions_;
  StopOrder stop_;
  // Until when the tap's answer is awaited, monotonic; 0: none is.
  uint64_t deadline_ns_ = 0;
  // The position in the ring at which the streams end; nothing while it is not known.
  std::optional<uint64_t> end_position_;
  // Of a snapshot that is too late: the position up to which the ring may hold it.
  std::optional<uint64_t> collected_before_;
  // Of a trace that the budget renews: the answers to STOP, and the records of stops, that are not
  // the capture's end.
  uint32_t restart_answers_ = 0;
  uint32_t restart_stops_ = 0;
};

}  // namespace neurontrace
