// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/neuron/capture_streams.h"
#include "agent/source/neuron/tap_session.h"
#include "agent/source/neuron/worker_facts.h"
#include "agent/source/source.h"
#include "trace/capture_spec.h"
#include "trace/event_filter.h"
#include "trace/stream_cursor.h"

namespace neurontrace {

// What a capture wants, understood once for all workers.
struct CapturePlan {
  CaptureId id;
  CaptureSpec spec;
  EventFilter filter;
};

// The START that has `worker` record what `plan` wants. The runtime filters by names, so groups and
// exclusions are resolved against its own list; INVALID_ARGUMENT if nothing on it is wanted. What a
// START cannot say (too many names) is left to the agent's own filter.
absl::StatusOr<TapStartOrder> MakeStartOrder(const CapturePlan& plan, const WorkerFacts& worker);

// In words for people, what a tap's state means for a capture.
std::string DescribeForCapture(TapState state, int32_t nrt_status, const std::string& detail);

// One worker's part in one capture: what was asked of its tap, and its streams. Says each change of
// state to the listener at once, and counts when told to. On the agent's sequence.
class WorkerCapture {
 public:
  WorkerCapture(const StreamSurroundings& surroundings, SourceListener& listener,
                const CapturePlan& plan, const WorkerIdentity& worker);

  CaptureStreams& streams() { return *streams_; }
  const CaptureStreams& streams() const { return *streams_; }
  const CapturePlan& plan() const { return plan_; }
  // When the aggregator spoke of it, monotonic; now, where it has not.
  uint64_t joined_ns() const { return confirmed_ns_.value_or(NowNs()); }
  // Of each core's ring in the runtime, as START asks for it.
  uint64_t ring_events() const;

  // The aggregator wants it: before that the tap is told nothing.
  void Confirm() {
    if (!confirmed_ns_) confirmed_ns_ = NowNs();
  }
  // The tap records it, for an agent before this one.
  void OnRunning();
  // The commands. TryStart sends a START if it is time for one; Stop sends a STOP.
  void TryStart(TapSession& session, TapState state, const WorkerFacts& facts);
  void Stop(TapSession* session);
  // The connection is new: says again what it must know.
  void Reconnect(TapSession& session, TapState state, const WorkerFacts& facts);
  // Answers to them, and word of a change of state.
  void OnStartAnswer(const TapReport& report);
  void OnStopAnswer(uint64_t write_position);
  void OnStateChange(const TapReport& report);

  // Where its streams continue. One that has not ended was being recorded, as far as anybody knows.
  void Resume(const std::vector<StreamCursor>& cursors);

  // Records of this capture; OnDocument before what is in it.
  void OnDocument() { recorded_ = tracing_ = true; }
  void OnTraceStarted(const TapRecord& record);
  void OnTraceStopped(const TapRecord& record);

  // `position`: that of the next record; `drained`: there is none yet. Ends the streams when it is
  // time, and closes old chunks.
  void Tick(uint64_t position, bool drained);
  void Flush(uint64_t position) { streams_->Flush(position); }
  // Nothing follows: the worker is gone. `loss` tells what went with it, unless it said good-bye.
  void EndBecauseGone(uint64_t position, bool said_goodbye);
  void EndBecauseBroken(uint64_t position, const std::string& why);

  bool ended() const { return ended_; }
  bool finished() const { return ended_ && streams_->finished(); }
  void ReportCounts();

 private:
  void Enter(CaptureWorkerState state, std::string detail);
  void End(uint64_t position);
  uint64_t NowNs() const { return surroundings_.clock.MonotonicNs(); }

  const StreamSurroundings& surroundings_;
  SourceListener& listener_;
  const CapturePlan plan_;
  const WorkerIdentity worker_;
  std::optional<uint64_t> confirmed_ns_;
  std::unique_ptr<CaptureStreams> streams_;

  CaptureWorkerState state_ = CaptureWorkerState::kUnspecified;
  std::string detail_;
  std::optional<CaptureWorkerStatus> reported_;
  bool start_sent_ = false;
  uint64_t next_start_ns_ = 0;
  bool recorded_ = false;  // a trace of it was seen to run
  bool tracing_ = false;   // and was not seen to stop
  bool stop_wanted_ = false;
  uint64_t stop_deadline_ns_ = 0;
  std::optional<uint64_t> end_position_;
  bool ended_ = false;
};

}  // namespace neurontrace
