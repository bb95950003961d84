// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/capture/execution_gate.h"
#include "agent/source/neuron/capture/fidelity_note.h"
#include "agent/source/neuron/capture/sequence_gaps.h"
#include "agent/source/neuron/capture/snapshot_window.h"
#include "agent/source/neuron/decode/nrt_event_decoder.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"
#include "agent/source/stream_writer.h"
#include "lib/base/fill_rate.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/remark.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// What every stream of an agent's taps needs; all of it outlives the streams.
struct StreamSetup {
  std::string agent_id;
  const Clock& clock;
  ChunkSink& sink;
  AgentSourceMetrics& metrics;
};

// Which events of a worker a capture selects, beyond what the runtime was already ordered to omit.
struct EventSelection {
  EventFilter filter;
  // Logical cores; empty: all.
  std::vector<uint32_t> cores;
  // Nothing is recorded before SetExecutions.
  bool by_execution = false;
  // Ranges of ranks; empty: all. A core whose rank is not known is in none.
  std::vector<GidRange> worker_gids = {};
  // True for a snapshot, whose events come from rings that were held.
  bool collected = false;

  bool SelectsCore(uint32_t nc_idx) const;
};

// The streams of one worker in one capture, one for each core and one for events without a core.
// Rows go to their core's stream; gaps in its sequence become losses. What comes after End is
// counted and dropped. On the agent's sequence.
class CaptureStreams final : public NrtEventSink {
 public:
  // `surroundings` has references that outlive the streams; `selection` is copied.
  CaptureStreams(const StreamSetup& capture_context, const CaptureId& capture_id,
                 WorkerIdentity worker, EventSelection selection);

  // Sets where this worker's streams continue; streams that are named are opened, so that they will
  // be ended.
  void Resume(const std::vector<StreamCursor>& cursors);
  // Sets which executions are recorded, in a capture by execution. May be repeated; the last call
  // counts.
  void SetExecutions(const ExecutionBounds& bounds);
  // Returns how far the worker's cores have come.
  ExecutionProgress executions() const;
  // Returns whether events of no particular core are recorded: some core is between its first and
  // its last execution.
  bool AnyPassing() const;
  // Sets which events belong to a snapshot; before its first record.
  void SetWindow(SnapshotWindow window) { window_ = window; }
  // Returns how far back from its cut a snapshot is complete; 0: not known, or no snapshot.
  uint64_t reaches_back_ns() const { return window_ ? window_->reaches_back_ns() : 0; }
  // Records, from the next record on, only what `note.level` leaves. Every core's stream contains
  // the note, as an instant after the current record. Called between records.
  void SetFidelity(FidelityNote note);
  // Sets the rank evidence of a core, best first, with remarks about it; also for streams that are
  // opened later.
  void SetRankEvidence(uint32_t nc_idx, const std::vector<RankEvidence>& evidence,
                       const std::vector<Remark>& remarks = {});

  // Handles the begin of a trace in the runtime: sequence numbers start again, with empty rings.
  void BeginTrace(const TapRecord& record);
  // Takes the tap's report about fetches that failed. Events that the tap fetched and had no room
  // for become a loss by number, and are subtracted from the gap that they left in their core's
  // sequence.
  void HandleTapLoss(const TapRecord& record, const TapLoss& loss);

  // The rows of one fetch document come between these two calls, complete.
  void BeginDocument(const TapRecord& record);
  void EndDocument(const TapRecord& record, const NrtDecodeOutcome& outcome);
  void OnEvent(const NrtEvent& event) override;
  void OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                    std::string_view why) override;

  // Adds a loss of the worker as a whole, found in the record at `position`.
  void AddLoss(uint64_t position, Loss loss);
  // Adds a report of a suspension to the worker's stream without a core.
  void AddSuspension(uint64_t position, const Suspension& suspension);
  // Handles the end of the trace: counts as lost the events that the tap refused, of no particular
  // core, and that no gap accounts for.
  void EndTrace(const TapRecord& record);

  // To be called between records; `position` is that of the next one.
  void Tick(uint64_t position);
  void Flush(uint64_t position);
  void End(uint64_t position);

  // Measures how fast the runtime's rings fill. To be called a few times a second; `now_ns` is
  // realtime. `drained`: the tap has fetched lately and everything is read, so a core without
  // documents was idle.
  void ObserveRings(uint64_t now_ns, bool drained);
  // Calls `visit(nc_idx, ns)` for every core whose fill rate is known: how long after its last
  // fetch a ring of `ring_events` overwrites if no other fetch follows, less the time that it has
  // waited already where the tap has `stalled`.
  template <typename Visit>
  void VisitRings(uint64_t now_ns, bool stalled, uint64_t ring_events, Visit visit) const {
    for (uint32_t slot = 0; slot < limits::kCoresPerWorkerMax && !ended_; ++slot) {
      const Core* const core = cores_[slot].get();
      if (core == nullptr || !core->fill || !core->fill->known()) continue;
      visit(slot, core->fill->NsToFull(stalled ? now_ns : core->fetched_ns, ring_events,
                                       limits::kHeadroomMaxNs));
    }
  }

  // Returns true once every stream has ended and every chunk has its last receipt.
  bool finished() const;
  uint32_t stream_count() const { return stream_count_; }
  StreamWriter::Counts counts() const;
  // Returns the least position in the tap's ring from which records must be kept; nothing if all is
  // durable.
  std::optional<uint64_t> first_undurable_position() const;
  // Returns the record that reports refused events of no particular core, while gaps do not account
  // for all of them. While it is kept, an agent that restarts accounts for them as this one would.
  std::optional<uint64_t> first_unexplained_position() const;

  // worker_gid >= 0 of events, by core. TakeGidsChanged returns true once after each change.
  const std::map<uint32_t, int64_t>& event_gids() const { return event_gids_; }
  bool TakeGidsChanged() { return std::exchange(gids_changed_, false); }

 private:
  // The state of one core's stream.
  struct Core {
    std::unique_ptr<StreamWriter> writer;
    SequenceGaps gaps;
    int64_t gid = -1;
    // Times of the document at hand, or of a loss that is about to be recorded.
    uint64_t first_timestamp_ns = 0;
    uint64_t last_timestamp_ns = 0;
    uint64_t earliest_timestamp_ns = 0;
    uint64_t lowest_id = 0;
    // Events of the document, and whether it has any.
    uint64_t events = 0;
    bool touched = false;
    // A fetch of this core has failed since its last document.
    bool fetch_failed = false;
    std::optional<FillRate> fill;  // while a trace runs
    uint64_t fetched_ns = 0;       // realtime of the last document
    ExecutionGate gate;
    // Whether the capture selects the core; true for what is of no core.
    const bool selected;
    // Whether the capture selects its rank.
    bool of_ranks = true;
    // The value of fidelity_changes_ at its last note; 0: it has none.
    uint64_t fidelity_reported = 0;
    Core(bool by_execution, bool is_selected) : gate(by_execution), selected(is_selected) {}
  };
  // What is known about a shape, so that names are compared once for each rather than for each
  // event.
  struct ShapeNote {
    // 0: not decided; otherwise kNotSelected, kSelected or kLeftOut.
    uint8_t selected = 0;
    // A result of FindExecution.
    int8_t execution = 0;
  };
  static constexpr uint32_t kSlots = limits::kStreamsPerWorkerMax;

  static uint32_t SlotOf(uint32_t nc_idx) {
    return nc_idx < limits::kCoresPerWorkerMax ? nc_idx : kSlots - 1;
  }
  // Returns the core's state; opens its stream with the first call.
  Core& CoreAt(uint32_t slot);
  // Notes an event of the document: its times, its number in the sequence and its rank.
  Core& Touch(uint32_t nc_idx, const EventFields& fields, uint32_t present);
  const ShapeNote& NoteOf(const CachedShape& shape);
  // Returns whether the execution that the event belongs to is recorded.
  bool Admits(Core& core, const NrtEvent& event, const ShapeNote& note);
  // Records a loss of the core, unless it does not belong to the capture.
  void ReportLoss(Core& core, uint64_t position, Loss loss);
  void EndDocumentOf(Core& core, const TapRecord& record);
  // Turns a gap into losses, by place: refused by the tap, or overwritten in the runtime's ring.
  void AddHoles(Core& core, uint64_t position, const SequenceGaps::Holes& holes);
  bool SelectsRanks(uint32_t slot) const;
  void ReportRank(uint32_t slot, StreamWriter& writer) const;
  void ReportFidelity();
  void ReportOmitted(uint64_t now_ns);

  const StreamSetup capture_context_;
  const CaptureId capture_id_;
  const WorkerIdentity worker_;
  const EventSelection selection_;

  std::array<std::unique_ptr<Core>, kSlots> cores_;
  uint32_t stream_count_ = 0;
  std::array<std::vector<RankEvidence>, kSlots> evidence_;
  std::array<std::vector<Remark>, kSlots> rank_remarks_;
  std::map<uint32_t, StreamCursor> cursors_;  // by slot
  ExecutionBounds executions_;
  std::optional<SnapshotWindow> window_;
  std::map<uint32_t, int64_t> event_gids_;
  bool gids_changed_ = false;
  std::optional<uint64_t> trace_begun_;  // where, if this agent saw it
  uint64_t trace_begun_ns_ = 0;          // realtime
  bool ended_ = false;
  uint64_t end_position_ = 0;
  bool begins_with_zero_ = false;  // this runtime's sequence numbers do
  // Events that the tap refused for cores that it could not tell, and that no gap has explained
  // yet.
  uint64_t refused_of_any_ = 0;
  // The position of the first record that reported those.
  uint64_t refused_of_any_position_ = 0;

  // What the budget leaves out.
  FidelityNote fidelity_;
  uint64_t fidelity_changes_ = 0;
  // Since when what is left out has not been recorded as such, realtime; 0: nothing is left out.
  uint64_t left_out_since_ns_ = 0;
  std::optional<uint64_t> reported_position_;  // of the last record that rows can follow

  // The document at hand.
  uint64_t position_ = 0;
  std::vector<uint32_t> touched_;

  std::vector<ShapeNote> shape_notes_;  // by CachedShape::number
  uint32_t shape_generation_ = 0;
};

}  // namespace neurontrace
