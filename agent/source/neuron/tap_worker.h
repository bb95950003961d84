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

#include "agent/source/neuron/capture/overhead_governor.h"
#include "agent/source/neuron/capture/worker_capture.h"
#include "agent/source/neuron/capture/worker_watch.h"
#include "agent/source/neuron/tap/peer_identity.h"
#include "agent/source/neuron/tap/record_buffer.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"
#include "agent/source/neuron/tap/tap_session.h"
#include "agent/source/neuron/tap/worker_facts.h"
#include "agent/source/source.h"
#include "lib/base/fill_rate.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// Reads the processor time of the calling thread. TapWorker reads it twice a turn.
uint64_t ReadThreadCpuNs();

// What one worker costs this machine: the tap's drain rounds, by its own account (time on the
// clock, the runtime's fetch included: more than it used, where it had to wait for a processor),
// and the agent's time on what the tap wrote. A tap's account is not trusted: it is one thread, so
// no more than all of the time since it was last looked at. A plain value.
class WorkerCost {
 public:
  void AddAgent(uint64_t ns) { core_ns_ += ns; }
  // `tap_ns`: the tap's own counter; `bytes`: of chunks, so far.
  void Observe(uint64_t now_ns, uint64_t tap_ns, uint64_t bytes);

  uint64_t core_ns() const { return core_ns_; }
  // Over about a second; nothing before one has passed.
  const std::optional<OverheadCost>& recent() const { return recent_; }

 private:
  static constexpr uint64_t kRecentNs = 1'000'000'000;

  bool seen_ = false;
  uint64_t seen_ns_ = 0;
  uint64_t tap_ns_ = 0;
  uint64_t core_ns_ = 0;
  uint64_t marked_ns_ = 0;
  OverheadTotals marked_;
  std::optional<OverheadCost> recent_;
};

// One worker process with a tap: its shared buffer, its connection while there is one, and its part
// in each capture. Survives the connection, and the process, until all that was in the buffer has
// been read and delivered. On the agent's sequence.
class TapWorker {
 public:
  // All captures that go on are told at once when the aggregator is reached: one that was not by
  // then is over.
  static constexpr uint64_t kStrangerPatienceNs = 1'000'000'000;

  // What all workers of an agent share; outlives them.
  struct Shared {
    StreamSetup streams;
    StreamSetup preview_streams;  // whose chunks are only counted
    SourceListener& listener;
    const ProcFiles& proc;
    NrtEventDecoder decoder;
    RecordBuffer buffer;
    std::function<uint64_t()> read_thread_cpu_ns;
    bool with_arguments = false;   // whether whole command lines are reported
    WorkerWatch* watch = nullptr;  // null: nobody looks on
  };

  // What the kernel said of who connected, beside the identity.
  struct Peer {
    bool pid_claimed = false;   // it said nothing of that
    std::optional<uid_t> user;  // nothing: likewise
    std::vector<uint32_t> ancestors = {};
  };
  TapWorker(Shared& shared, WorkerIdentity identity, Peer peer,
            std::unique_ptr<TapBufferReader> reader);

  const WorkerIdentity& identity() const { return identity_; }
  std::optional<uid_t> user() const { return peer_.user; }
  const std::string& job() const { return facts_.job; }
  const TapBufferReader& reader() const { return *reader_; }
  // The capture that the tap runs, as far as it said; empty: none.
  const CaptureId& tap_capture() const { return tap_capture_; }
  bool connected() const { return session_ != nullptr; }
  // Its tap may come back over a new connection.
  bool can_attach() const { return session_ == nullptr && !broken_; }

  // The connection; `session` outlives the worker or its Detach.
  void Attach(TapSession& session, const TapGreeting& greeting);
  void Detach();
  void OnReport(const TapReport& report);
  // Nothing more comes from it.
  void DeclareGone() {
    process_gone_ = true;
    ranks_changed_ = true;
  }

  // How a worker takes part in a capture: unless it is `confirmed` by the aggregator, the tap is
  // told nothing; without a moment it only says whether it could begin.
  struct Joining {
    bool confirmed = false;
    bool arm = false;
    std::optional<PlannedMoment> moment;
    bool late = false;
    ExecutionBounds executions;
  };
  // Captures. Join again with the same id takes note of what is new.
  void Join(const CapturePlan& plan, const std::vector<StreamCursor>& cursors,
            const Joining& joining);
  // At `stop_at_ns`, monotonic; 0: at once.
  void Stop(const CaptureId& capture_id, uint64_t stop_at_ns = 0);
  bool has(const CaptureId& capture_id) const { return captures_.contains(capture_id); }
  // Tells the tap what it is time for.
  void TellDue();
  // Reports how far captures by execution are; false if there is none that waits.
  bool ReportExecutions();
  void Forget(const CaptureId& capture_id);
  bool Matches(const CaptureSpec& spec) const;
  bool IsFinished(const CaptureId& capture_id) const;

  // Reads what is in the buffer, about `bytes` of it. True if there is more to read at once.
  // DATA_LOSS when the buffer makes no sense: the streams are ended, and the connection should be.
  absl::StatusOr<bool> Read(size_t bytes);
  // A few times a second: facts, deadlines, old chunks, what is durable, what to report.
  void Tick();
  // Closes the chunks that are open.
  void Flush();
  bool HasMore() const { return !broken_ && reader_->HasMore(); }

  // Until the shared buffer is full at the rate at which the tap writes, if nothing of it were
  // committed any more; kUnknownNs before that is known.
  uint64_t NsToBufferFull() const;
  // The headroom of the runtime's rings: the least of each core goes into `nearest`, in ns.
  void AddRingHeadroom(std::map<uint32_t, uint64_t>& nearest) const;
  // What it costs, over the last second or so, and how much of what was asked for is recorded.
  struct Load {
    std::optional<OverheadCost> cost;
    std::optional<uint32_t> fidelity;  // of its capture with a budget
  };
  Load load() const;
  // When it was read last, in turns of the source.
  void NoteTurn(uint64_t turn) { last_turn_ = turn; }
  uint64_t last_turn() const { return last_turn_; }
  // Asks to be woken by the tap; true if something came in between.
  bool WaitForMore() { return !broken_ && reader_->WaitForMore(); }

  // Grows with every change of what is reported of the worker.
  uint64_t info_version() const { return info_version_; }

  // What can tell its ranks, without what only the node knows.
  RankFacts rank_facts() const;
  uint64_t arrived_ns() const { return arrived_ns_; }
  // Takes the answer of a resolution in which it `could_be_placed`.
  void SetRanks(const RankResolution& ranks, bool could_be_placed);
  // Whether it has no place among the node's workers and has not been in a resolution that could
  // have given it one.
  bool AwaitsPlace() const { return !process_gone_ && !was_placeable_ && !ranks_.first_node_core; }
  // Its pod by the kubelet's word; nothing: there is none, and its environment's counts.
  void SetPod(std::optional<WorkerPod> pod) { pod_ = std::move(pod); }
  // True once after each change of what ranks are told from.
  bool TakeRanksChanged() { return std::exchange(ranks_changed_, false); }

  // The process is gone, and so is everything it left: the worker can be destroyed.
  bool done() const;

 private:
  absl::StatusOr<bool> ReadRecords(size_t bytes);
  absl::StatusOr<bool> ReadOne();
  void TakeRecord(const TapRecord& record);
  void TakeDocument(const TapRecord& record, WorkerCapture& capture);
  bool IsWatched(const TapRecord& record, const WorkerCapture& capture);
  void TakeTapLoss(const TapRecord& record, WorkerCapture& capture);
  bool MustWaitFor(const CaptureId& capture_id) const;
  WorkerCapture* FindCapture(const CaptureId& capture_id);
  std::optional<uint32_t> RememberedPlace() const;
  void RememberPlace();
  void TellRanks(CaptureStreams& streams) const;
  void ObserveFilling();
  void TellRefusedRecords();
  void RefreshFacts();
  void CheckLife();
  void ObserveCost();
  void Govern();
  void StopStrangers();
  void Commit();
  void ReportInfo();
  WorkerInfo MakeInfo() const;
  void SettlePrecedence();
  TapView View() const;
  // With what another capture has been promised in the place of what the tap runs: who is armed
  // begins, and a second one that arms meanwhile finds the tap taken.
  TapView ViewOf(const CaptureId& asking) const;

  Shared& shared_;
  const WorkerIdentity identity_;
  const Peer peer_;
  const std::unique_ptr<TapBufferReader> reader_;
  const uint64_t arrived_ns_;  // monotonic

  TapSession* session_ = nullptr;
  TapState tap_state_ = TapState::kNotInitialised;
  CaptureId tap_capture_;  // that the tap runs, as far as it said
  CaptureId reading_;      // of the last record: a snapshot, or what the tap ran before
  uint64_t connection_changed_ns_ = 0;
  bool process_gone_ = false;
  bool memory_released_ = false;
  bool said_goodbye_ = false;
  bool broken_ = false;
  bool gone_reported_ = false;

  // Headroom, as of the last tick.
  uint64_t deferred_seen_;
  uint64_t control_refused_seen_ = 0;  // by a tap without an agent: told when one is there
  uint64_t written_seen_;
  bool stalled_ = false;  // the tap puts fetches off for want of room
  FillRate buffer_fill_;
  uint64_t last_turn_ = 0;

  uint64_t facts_generation_ = 0;
  WorkerFacts facts_;
  std::optional<WorkerPod> pod_;
  RankResolution ranks_;
  bool ranks_changed_ = true;
  bool was_placeable_ = false;
  std::optional<WorkerInfo> reported_;
  uint64_t info_version_ = 0;

  WorkerCost cost_;
  HeldRings held_rings_;

  std::map<CaptureId, std::unique_ptr<WorkerCapture>> captures_;
  std::set<CaptureId> forgotten_;
  std::optional<CaptureId> blocked_on_;
};

}  // namespace neurontrace
