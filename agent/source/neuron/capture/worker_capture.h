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
#include "agent/source/neuron/capture/snapshot_window.h"
#include "agent/source/neuron/capture/tap_orders.h"
#include "agent/source/neuron/capture/worker_fidelity.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "agent/source/source.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// Since when and until when a continuous capture has nothing of a worker because another capture
// had its tap, as losses of no events for the account of the worker. Said at once, so that the
// agent that takes over knows when it began, and again while it goes on. All times are realtime.
class Suspension {
 public:
  // How old what was said of a stretch that goes on gets.
  static constexpr uint64_t kTellNs = 2'000'000'000;

  // It gives way to `other`; its trace is about to end, or had none.
  void GiveWay(const CaptureId& other, uint64_t now_ns);
  // A trace of it ended by command, and the capture did not; what to say of it.
  Loss TraceStopped(uint64_t at_ns);
  // A trace of it began.
  std::optional<Loss> TraceStarted(uint64_t at_ns);
  // What has to be said now, a few times a second; with `is_last` all that there is.
  std::vector<Loss> Take(uint64_t now_ns, bool is_last = false);

 private:
  std::vector<Loss> due_;
  std::optional<uint64_t> since_ns_;
  uint64_t told_ns_ = 0;  // up to here; 0: nothing
  CaptureId other_;
  std::string words_ = DescribeSuspension(CaptureId());
};

// A worker's tap as a capture sees it.
struct TapView {
  TapSession* session = nullptr;  // null: not connected
  TapState state = TapState::kNotInitialised;
  CaptureId running;                        // that the tap has been told to record; empty: none
  std::optional<CaptureMode> running_mode;  // where this agent knows that capture
  uint64_t read_position = 0;
  uint64_t write_position = 0;
  const WorkerFacts& facts;
};

// One worker's part in one capture: what was asked of its tap, and its streams. Says each change of
// state to the listener at once, and counts when told to. On the agent's sequence.
class WorkerCapture {
 public:
  // From a command, or the last record read since, to giving up on the tap's answer. A tap may
  // collect for half a minute.
  static constexpr uint64_t kStopPatienceNs = 10'000'000'000;
  static constexpr uint64_t kCollectPatienceNs = 40'000'000'000;
  // A snapshot whose cut is so long ago is not taken any more: the rings have gone on.
  static constexpr uint64_t kCutAgeMaxNs = 60'000'000'000;

  WorkerCapture(const StreamSetup& surroundings, SourceListener& listener, const CapturePlan& plan,
                const WorkerIdentity& worker);

  CaptureStreams& streams() { return *streams_; }
  const CaptureStreams& streams() const { return *streams_; }
  const CapturePlan& plan() const { return plan_; }
  // When the aggregator spoke of it, monotonic; now, where it has not.
  uint64_t joined_ns() const { return confirmed_ns_.value_or(NowNs()); }
  // Of each core's ring in the runtime, as START asks for it.
  uint64_t ring_events() const;

  // The aggregator wants it: before that the tap is told nothing.
  void Confirm();
  // The tap records it, for an agent before this one.
  void OnRunning();
  // Says whether it could begin, and again whenever the tap's state changes, until it does.
  void Arm(const TapView& tap);
  // It is to begin at that moment, or is cut there; `late`: others have begun. Once. TryStart
  // follows. `rings` is of this worker and outlives the capture.
  void Begin(const PlannedMoment& moment, bool late, HeldRings& rings);
  // The commands. TryStart sends a START (or, for a snapshot, a COLLECT) if it is time for one;
  // Stop sends a STOP, for the time that it is given (monotonic; 0: at once).
  void TryStart(const TapView& tap);
  void Stop(TapSession* session, uint64_t stop_at_ns = 0);
  // A standing capture gives the tap to `other`, which needs it, and takes it back.
  // GiveWay again while it is so.
  void GiveWay(const TapView& tap, const CaptureId& other);
  void TakeBack();
  bool suspended() const { return suspended_for_.has_value(); }
  // It has begun, or would if the tap were free; and it is one that may not have the tap together
  // with another.
  bool WantsTap() const;
  // It has said that it can begin, and waits for the moment.
  bool armed() const {
    return state_ == CaptureWorkerState::kArmed && !stop_wanted_ && !ended_ && !is_snapshot();
  }
  // The connection is new: says again what it must know, but START, for which TryStart follows.
  void Reconnect(const TapView& tap);
  // Keeps it within its budget; `core_ns` is what the worker has cost so far. A few times a second,
  // between records.
  void Govern(const TapView& tap, uint64_t core_ns);
  // In effect; nothing without a budget.
  std::optional<uint32_t> fidelity() const;
  // Answers to them, and word of a change of state.
  void OnStartAnswer(const TapReport& report);
  void OnStopAnswer(uint64_t write_position);
  void OnCollectAnswer(const TapReport& report, uint64_t write_position);
  void OnStateChange(const TapReport& report, const TapView& tap);

  // Where its streams continue. One that has not ended was being recorded, as far as anybody knows.
  void Resume(const std::vector<StreamCursor>& cursors);

  // Records of this capture; OnDocument before what is in it.
  void OnDocument() {
    if (!ended_) recorded_ = tracing_ = true;
  }
  void OnTraceStarted(const TapRecord& record, const WorkerFacts& facts);
  void OnTraceStopped(const TapRecord& record);

  // `position`: that of the next record; `drained`: there is none yet. Ends the streams when it is
  // time, and closes old chunks.
  void Tick(uint64_t position, bool drained);
  void Flush(uint64_t position) { streams_->Flush(position); }
  // Nothing follows: the worker is gone. `loss` tells what went with it, unless it said good-bye.
  void EndBecauseGone(uint64_t position, bool said_goodbye);
  void EndBecauseBroken(uint64_t position, const std::string& why);

  // A trace of it was seen to run.
  bool has_recorded() const { return recorded_; }
  bool ended() const { return ended_; }
  bool finished() const { return ended_ && streams_->finished(); }
  void ReportCounts();

 private:
  bool holds() const { return plan_.spec.mode == CaptureMode::kFlightRecorder; }
  bool is_snapshot() const { return plan_.spec.mode == CaptureMode::kSnapshot; }
  // Something of it was seen, by this agent or by one before it.
  bool has_part() const { return recorded_ || streams_->stream_count() > 0; }
  bool is_continuous() const { return plan_.spec.mode == CaptureMode::kContinuous; }
  void Enter(CaptureWorkerState state, std::string detail,
             CaptureObstacle obstacle = CaptureObstacle::kNone);
  // Something keeps it from recording. One that has recorded stays "recording": what it gave is
  // kept, and it may go on.
  void EnterStored(std::string detail, CaptureObstacle obstacle);
  void EnterStored(const TapReport& report);
  // The tap has it, and does not record it yet: its time may not have come, or something keeps it.
  void EnterWaiting(const TapReport& report);
  bool is_due() const { return moment_ && NowNs() >= moment_->monotonic_ns; }
  void TryCollect(const TapView& tap);
  void RefuseSnapshot(CaptureObstacle obstacle, std::string detail);
  CaptureObstacle ObstacleNow(const TapView& tap, std::string& detail) const;
  void NoteBegun(const TapRecord& record);
  uint32_t fidelity_level() const { return fidelity_ ? fidelity_->level() : 0; }
  void RestartTrace(const TapView& tap);
  CaptureWorkerStatus MakeStatus() const;
  void EnterStopping(uint64_t stopped_ns);
  void End(uint64_t position);
  void EndAsAsked(uint64_t position);
  void TellGivenWay(uint64_t position, bool is_last);
  uint64_t NowNs() const { return surroundings_.clock.MonotonicNs(); }

  const StreamSetup& surroundings_;
  SourceListener& listener_;
  const CapturePlan plan_;
  const WorkerIdentity worker_;
  std::optional<uint64_t> confirmed_ns_;
  std::unique_ptr<CaptureStreams> streams_;
  std::optional<WorkerFidelity> fidelity_;  // with a budget

  CaptureWorkerState state_ = CaptureWorkerState::kUnspecified;
  CaptureObstacle obstacle_ = CaptureObstacle::kNone;
  std::string detail_;
  std::optional<CaptureWorkerStatus> reported_;
  bool arming_ = false;                  // it is asked whether it could begin
  std::optional<PlannedMoment> moment_;  // once it was told to begin
  bool late_ = false;
  bool refused_since_ = false;  // after it was told to
  uint64_t begun_realtime_ns_ = 0;
  bool began_unseen_ = false;  // its trace runs; one that begins now is not its beginning
  bool start_sent_ = false;    // of a snapshot: COLLECT
  bool cannot_start_ = false;  // no START can be made for it
  std::optional<CaptureId> suspended_for_;
  Suspension given_way_;   // of a continuous capture
  bool way_told_ = false;  // the tap, on this connection, to stop it for that one
  uint64_t next_start_ns_ = 0;
  bool recorded_ = false;  // a trace of it was seen to run
  bool tracing_ = false;   // and was not seen to stop
  bool stop_wanted_ = false;
  bool stop_sent_ = false;
  bool was_to_begin_ = false;  // before it was told to stop
  uint64_t stop_at_ns_ = 0;    // monotonic
  uint64_t stop_deadline_ns_ = 0;
  std::optional<uint64_t> end_position_;
  std::optional<uint64_t>
      collected_before_;  // of a snapshot that is too late: where the ring stood
  bool ended_ = false;
  // Of a trace that begins anew: the tap's answers to STOP, and its records of stops, that are not
  // the capture's end.
  uint32_t restart_answers_ = 0;
  uint32_t restart_stops_ = 0;
};

}  // namespace neurontrace
