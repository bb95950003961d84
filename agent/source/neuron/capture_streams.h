// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/source/neuron/nrt_event_decoder.h"
#include "agent/source/neuron/sequence_gaps.h"
#include "agent/source/neuron/tap_buffer_reader.h"
#include "agent/source/stream_writer.h"
#include "trace/event_filter.h"

namespace neurontrace {

// What every stream of an agent's taps needs; all of it outlives them.
struct StreamSurroundings {
  std::string agent_id;
  const Clock& clock;
  ChunkSink& sink;
  AgentSourceMetrics& metrics;
};

// Which events of a worker a capture wants, over what the runtime was already asked to leave out.
struct EventSelection {
  EventFilter filter;
  std::vector<uint32_t> cores;  // empty: all

  bool SelectsCore(uint32_t nc_idx) const;
};

// The streams of one worker in one capture, one for each core (and one for events without): rows go
// to their core's stream, holes in its sequence become losses. On the agent's sequence.
class CaptureStreams final : public NrtEventSink {
 public:
  CaptureStreams(const StreamSurroundings& surroundings, const CaptureId& capture_id,
                 WorkerIdentity worker, EventSelection selection);

  // Where this worker's streams continue; those named are opened, so that they will be ended.
  void Resume(const std::vector<StreamCursor>& cursors);
  // Best first. For streams opened later as well.
  void SetRankEvidence(uint32_t nc_idx, const std::vector<RankEvidence>& evidence);

  // A trace begins in the runtime, by the record at `position`: sequence numbers begin again, with
  // empty rings.
  void BeginTrace(uint64_t position);
  // What the tap has fetched and found no room for since it began, as it estimates. Holes are laid
  // at its door before the runtime's; what was refused before the first call is another's affair.
  void NoteRefused(uint64_t refused_events);

  // One fetch document, whole.
  void BeginDocument(const TapRecord& record);
  void EndDocument(const TapRecord& record, const NrtDecodeOutcome& outcome);
  void OnEvent(const NrtEvent& event) override;
  void OnUnfitEvent(uint32_t nc_idx, const EventFields& fields, uint32_t present,
                    std::string_view why) override;

  // A loss of the worker as a whole, found in the record at `position`.
  void AddLoss(uint64_t position, Loss loss);
  // The trace ended at the record at `position`: what the tap refused and no hole told is lost too.
  void EndTrace(uint64_t position, uint64_t now_ns);

  // Both between records; `position` is the next one's.
  void Tick(uint64_t position);
  void End(uint64_t position);

  bool finished() const;  // every stream ended and every chunk received
  uint32_t stream_count() const { return stream_count_; }
  StreamWriter::Counts counts() const;
  std::optional<uint64_t> first_undurable_position() const;
  // The earliest record, not before `from`, that tells where the sequence of a running stream stood
  // before its first row or loss that is not durable: as long as it is kept, an agent that comes
  // back counts the holes as this one would have.
  std::optional<uint64_t> first_needed_position(uint64_t from);

  // worker_gid >= 0 of events, by core; `changed` is true once after each change.
  const std::map<uint32_t, int64_t>& event_gids() const { return event_gids_; }
  bool TakeGidsChanged() { return std::exchange(gids_changed_, false); }

 private:
  struct Core {
    std::unique_ptr<StreamWriter> writer;
    SequenceGaps gaps;
    int64_t gid = -1;
    // Records that gave rows, from the last one that is durable on.
    std::deque<uint64_t> positions;
    uint64_t first_timestamp_ns = 0;  // of the document at hand
    uint64_t last_timestamp_ns = 0;
    bool touched = false;  // by the document at hand
  };
  static constexpr uint32_t kSlots = limits::kStreamsPerWorkerMax;

  static uint32_t SlotOf(uint32_t nc_idx) {
    return nc_idx < limits::kCoresPerWorkerMax ? nc_idx : kSlots - 1;
  }
  Core& CoreAt(uint32_t slot);
  Core& Touch(uint32_t nc_idx, const EventFields& fields, uint32_t present);
  bool Selected(const CachedShape& shape);
  void AddHoles(Core& core, uint64_t position);

  const StreamSurroundings surroundings_;
  const CaptureId capture_id_;
  const WorkerIdentity worker_;
  const EventSelection selection_;

  std::array<std::unique_ptr<Core>, kSlots> cores_;
  uint32_t stream_count_ = 0;
  std::array<std::vector<RankEvidence>, kSlots> evidence_;
  std::map<uint32_t, StreamCursor> cursors_;  // by slot
  std::map<uint32_t, int64_t> event_gids_;
  bool gids_changed_ = false;
  std::optional<uint64_t> trace_begun_;  // where, if this agent saw it
  bool ended_ = false;
  bool begins_with_zero_ = false;  // this runtime's sequence numbers do
  bool refused_known_ = false;
  uint64_t refused_ = 0;            // by the tap, in all
  uint64_t refused_explained_ = 0;  // of these, told as a loss

  // The document at hand.
  uint64_t position_ = 0;
  std::vector<uint32_t> touched_;

  std::vector<uint8_t> selected_;  // by CachedShape::number: 0 not asked yet, 1 no, 2 yes
  uint32_t shape_generation_ = 0;
};

}  // namespace neurontrace
