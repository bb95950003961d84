// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/capture/held_rings.h"
#include "agent/source/neuron/capture/overhead_governor.h"
#include "agent/source/neuron/capture/worker_capture.h"
#include "agent/source/neuron/capture/worker_watch.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/neuron/tap/record_buffer.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "agent/source/neuron/worker_cost.h"
#include "agent/source/source.h"
#include "lib/base/fill_rate.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// Returns the processor time of the calling thread, in ns (CLOCK_THREAD_CPUTIME_ID). TapWorker
// reads it twice a turn.
uint64_t ReadThreadCpuNs();

// One worker process with a tap: its shared buffer, its connection while there is one, and its part
// in each capture. Outlives the connection and the process until everything in the buffer has been
// read and delivered. Owned by TapSource; on the agent's sequence.
class TapWorker {
 public:
  // When the aggregator is reached it lists all running captures at once; one that is not known
  // this long after that is over.
  static constexpr uint64_t kForeignCaptureTimeoutNs = 1'000'000'000;

  // What all workers of an agent share; outlives them. The decoder and the buffer are scratch
  // memory.
  struct Shared {
    StreamSetup streams;
    // The setup of previews, whose chunks are only counted.
    StreamSetup preview_streams;
    SourceListener& listener;
    const ProcFiles& proc;
    NrtEventDecoder decoder;
    RecordBuffer buffer;
    std::function<uint64_t()> read_thread_cpu_ns;
    // Whether whole command lines are reported.
    bool with_arguments = false;
    // Null if nothing observes the workers' events.
    WorkerWatch* watch = nullptr;
  };

  // What the kernel reported about the process that connected, beside the identity.
  struct Peer {
    // The pid, the start time or both are the tap's own claim.
    bool pid_claimed = false;
    // The user who connected, by the kernel; nothing: not known.
    std::optional<uid_t> user;
    std::vector<uint32_t> ancestors = {};
  };
  // Takes the reader of the worker's buffer. No connection yet; Attach follows.
  TapWorker(Shared& shared, WorkerIdentity identity, Peer peer,
            std::unique_ptr<TapBufferReader> reader);

  const WorkerIdentity& identity() const { return identity_; }
  std::optional<uid_t> user() const { return peer_.user; }
  const std::string& job() const { return facts_.job; }
  const TapBufferReader& reader() const { return *reader_; }
  // Returns the capture that the tap runs, as far as it has reported; empty if none.
  const CaptureId& tap_capture() const { return tap_capture_; }
  bool connected() const { return session_ != nullptr; }
  // Returns whether its tap may come back over a new connection.
  bool can_attach() const { return session_ == nullptr && !broken_; }

  // Sets the connection; `session` outlives the worker, or its Detach.
  void Attach(TapSession& session, const TapGreeting& greeting);
  // The connection is gone. The worker continues to be read.
  void Detach();
  // Handles a message of the tap: an answer to a command, or a new state.
  void OnReport(const TapReport& report);
  // Nothing more comes from it.
  void MarkGone() {
    process_exited_ = true;
    ranks_changed_ = true;
  }

  // How a worker takes part in a capture. Unless `confirmed` by the aggregator, the tap gets no
  // command; without a moment the worker only reports whether it could begin.
  struct Joining {
    // Whether the aggregator wants the capture.
    bool confirmed = false;
    // Whether it is to report if it could begin.
    bool arm = false;
    // When it begins; nothing before that is known.
    std::optional<PlannedMoment> moment;
    // Whether it was ordered to begin after others had begun.
    bool late = false;
    ExecutionBounds executions;
  };
  // Takes part in a capture. Repeated with the same id, it updates what has changed.
  void Join(const CapturePlan& plan, const std::vector<StreamCursor>& cursors,
            const Joining& joining);
  // Stops at `stop_at_ns` (monotonic; 0: at once).
  void Stop(const CaptureId& capture_id, uint64_t stop_at_ns = 0);
  bool has(const CaptureId& capture_id) const { return captures_.contains(capture_id); }
  // Sends the tap the commands that are due.
  void ReportDue();
  // Reports how far captures by execution have come; returns false if there is none that waits.
  bool ReportExecutions();
  // Stops the tap if it still runs the capture, and drops its streams.
  void Forget(const CaptureId& capture_id);
  // Returns whether the capture selects this worker, as far as it is known by now.
  bool Matches(const CaptureSpec& spec) const;
  // Returns true if it has no part in the capture, or that part is finished.
  bool IsFinished(const CaptureId& capture_id) const;

  // Reads about `bytes` of the buffer; returns true if there is more to read at once. Stops early
  // while the queue has no room. Fails with DATA_LOSS if the buffer is not valid: the streams are
  // ended, and the caller closes the connection.
  absl::StatusOr<bool> Read(size_t bytes);
  // To be called a few times a second: checks whether the process lives, closes old chunks,
  // releases what is durable, and reports changes.
  void Tick();
  // Closes the chunks that are open.
  void Flush();
  bool HasMore() const { return !broken_ && reader_->HasMore(); }

  // Returns the time in ns until the shared buffer is full at the rate at which the tap writes, if
  // nothing more were released; kUnknownNs before the rate is known.
  uint64_t NsToBufferFull() const;
  // Lowers the entries of `nearest` to the headroom of this worker's rings in the runtime, by core,
  // in ns.
  void AddRingHeadroom(std::map<uint32_t, uint64_t>& nearest) const;
  // What it costs, over the last second or so, and which level of detail is recorded.
  struct Load {
    std::optional<OverheadCost> cost;
    std::optional<uint32_t> fidelity;  // of its capture with a budget
  };
  Load load() const;
  // Records that it was read in this turn of the source.
  void RecordTurn(uint64_t turn) { last_turn_ = turn; }
  uint64_t last_turn() const { return last_turn_; }
  // Asks the tap to wake the agent with the next record; returns true if one came in between.
  bool WaitForMore() { return !broken_ && reader_->WaitForMore(); }

  // Returns true once after each change of what is reported of the worker.
  bool TakeInfoChanged() { return std::exchange(info_changed_, false); }

  // Returns the facts that ranks are resolved from, except those that only the node knows.
  RankFacts rank_facts() const;
  uint64_t arrived_ns() const { return arrived_ns_; }
  // Takes the result of a resolution in which it `could_be_placed`.
  void SetRanks(const RankResolution& ranks, bool could_be_placed);
  // Returns whether it has no place among the node's workers and has not been in a resolution that
  // could have given it one.
  bool AwaitsPlace() const {
    return !process_exited_ && !was_placeable_ && !ranks_.first_node_core;
  }
  // Sets its pod as the kubelet reports it; without one, its environment counts.
  void SetPod(std::optional<WorkerPod> pod) { pod_ = std::move(pod); }
  // Returns true once after each change of the facts that ranks are resolved from.
  bool TakeRanksChanged() { return std::exchange(ranks_changed_, false); }

  // Returns true if the process is gone and everything that it left is delivered: it can be
  // destroyed.
  bool done() const;

 private:
  // Reads until the share is used, the queue is full, a record has to wait, or nothing is left.
  absl::StatusOr<bool> ReadRecords(size_t bytes);
  // Returns false if there is no record, or it has to wait.
  absl::StatusOr<bool> ReadOne();
  // Hands the record to its capture. Records of unknown captures are counted and dropped.
  void HandleRecord(const TapRecord& record);
  void HandleDocument(const TapRecord& record, WorkerCapture& capture);
  // Returns whether the watch wants the events of this document.
  bool IsWatched(const TapRecord& record, const WorkerCapture& capture);
  void HandleTapLoss(const TapRecord& record, WorkerCapture& capture);
  // Returns whether records of this capture have to stay unread until it is announced.
  bool MustWaitFor(const CaptureId& capture_id) const;
  WorkerCapture* FindCapture(const CaptureId& capture_id);
  // Return and keep the worker's place among the cores of its job on this node.
  std::optional<uint32_t> RememberedPlace() const;
  void RememberPlace();
  void ReportRanks(CaptureStreams& streams) const;
  // Measures how fast the shared buffer and the runtime's rings fill.
  void ObserveFilling();
  void ReportRefusedRecords();
  // Reads the tap's facts again if they have changed.
  void RefreshFacts();
  // Finds out whether the process has ended; only without a connection.
  void CheckLife();
  void ObserveCost();
  // Measures the cost, and keeps each capture within its budget.
  void Govern();
  void StopForeignCaptures();
  // Releases the part of the ring that is durable.
  void Commit();
  // Reports the worker if its description has changed, and once that it is gone.
  void ReportInfo();
  WorkerInfo MakeInfo() const;
  // Suspends and resumes standing captures, then sends what is due.
  void SettlePrecedence();
  // Returns the tap as captures see it.
  TapView View() const;
  // The same for a capture that asks whether it could begin: a capture that was promised the tap
  // counts as running, so that a second one that arms meanwhile finds it taken.
  TapView ViewOf(const CaptureId& asking) const;

  Shared& shared_;
  const WorkerIdentity identity_;
  const Peer peer_;
  const std::unique_ptr<TapBufferReader> reader_;
  const uint64_t arrived_ns_;  // monotonic

  TapSession* session_ = nullptr;
  TapState tap_state_ = TapState::kNotInitialised;
  // The capture that the tap runs, as far as it has reported; empty: none.
  CaptureId tap_capture_;
  // The capture of the last record: the tap may run another one by now.
  CaptureId reading_;
  // When the connection came or went, monotonic.
  uint64_t connection_changed_ns_ = 0;
  bool process_exited_ = false;
  // The ring's memory was given back to the kernel.
  bool memory_released_ = false;
  // The process exits in an orderly way, by its last record or the state of its tap.
  bool sent_goodbye_ = false;
  // The buffer is not valid; nothing is read from it any more.
  bool broken_ = false;
  // The listener knows that the worker is gone.
  bool removal_reported_ = false;

  // Headroom, as of the last tick.
  uint64_t deferred_seen_;
  // Starts at 0: what a tap without an agent refused is reported when one is there.
  uint64_t control_refused_seen_ = 0;
  uint64_t written_seen_;
  // The tap defers fetches, because its buffer is full.
  bool stalled_ = false;
  FillRate buffer_fill_;
  uint64_t last_turn_ = 0;

  uint64_t facts_generation_ = 0;
  WorkerFacts facts_;
  std::optional<WorkerPod> pod_;
  RankResolution ranks_;
  bool ranks_changed_ = true;
  // It took part in a resolution that could have given it a place.
  bool was_placeable_ = false;
  std::optional<WorkerInfo> reported_;
  bool info_changed_ = false;

  WorkerCost cost_;
  HeldRings held_rings_;

  std::map<CaptureId, std::unique_ptr<WorkerCapture>> captures_;
  // Captures that are over: records that the ring still has of them are dropped.
  std::set<CaptureId> forgotten_;
  // The unknown capture whose record stopped the last reading.
  std::optional<CaptureId> blocked_on_;
};

}  // namespace neurontrace
