// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "agent/source/chunk_sink.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/limits.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Rows that went into the chunks before a cursor, and those that no chunk could hold.
uint64_t EventsRead(const StreamCursor& cursor);

// One stream's way from rows to chunks: numbers them, closes them by count, size or age, and knows
// what of its source is not durable yet. On the agent's sequence, like the sink.
//
// A source is a series of records at ascending positions (records of a tap's ring, elements of a
// file), read in order; a record may give rows to many streams and any number to each, always the
// same ones when it is read again. Rows of a record come by Append and LoseEvent, then what was
// found to be lost in the record as a whole by AddLoss. After a restart with the cursor of the last
// stored chunk, what that chunk and earlier ones hold is passed over, rows and losses alike; so
// every row and every loss is stored once.
class StreamWriter {
 public:
  struct Options {
    uint32_t chunk_events = limits::kChunkEventsTarget;
    // Before compression, which takes columns to a third or less.
    size_t chunk_columns_bytes = 3 * limits::kChunkBytesTarget;
    uint64_t chunk_age_ns = limits::kChunkAgeMaxNs;
    ClockDomain clock_domain = ClockDomain::kHostRealtime;
  };
  struct Counts {
    uint64_t read = 0;    // rows taken, by an earlier run of the agent, too
    uint64_t stored = 0;  // of these, in chunks that the aggregator has stored
    uint64_t bytes = 0;   // of chunks, encoded; by this run of the agent
    uint64_t lost = 0;    // in losses of a known number, and in refused chunks
    bool lost_unknown = false;
    // Given up on the way with the chunk that ends it: nothing tells the aggregator what is gone.
    bool given_up = false;
  };

  // Clock, sink and metrics outlive the writer; receipts may come after it is gone.
  StreamWriter(const CaptureId& capture_id, StreamIdentity stream, const Clock& clock,
               ChunkSink& sink, AgentSourceMetrics& metrics)
      : StreamWriter(capture_id, std::move(stream), clock, sink, metrics, Options()) {}
  StreamWriter(const CaptureId& capture_id, StreamIdentity stream, const Clock& clock,
               ChunkSink& sink, AgentSourceMetrics& metrics, const Options& options);
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  // Continues behind what the store holds. Before anything else.
  void Resume(const StreamCursor& cursor);
  // Goes into every chunk closed from now on; best first.
  void SetRankEvidence(std::vector<RankEvidence> evidence);

  // The next row of the record at `position`.
  void Append(uint64_t position, const CachedShape& shape, const EventFields& fields,
              std::span<const AttributeValue> values);
  // In place of a row: an event that no chunk can hold.
  void LoseEvent(uint64_t position, uint64_t timestamp_ns, std::string_view why);
  // In place of a row: an event that is not wanted now. When the record is read again, it may be
  // wanted: a row is told from the others of its record by its place among all of them.
  void PassOver(uint64_t position) { CountRow(position); }
  // After the rows of the record at `position`.
  void AddLoss(uint64_t position, Loss loss);
  // Counts one more remark of that kind, with a place and a reason for people. The source calls it
  // again for what it reads again after a restart, from its beginning on: the counts of a writer
  // are those of the whole source up to here.
  void AddRemark(uint64_t position, RemarkKind kind, std::string_view detail);
  // Replaces the remark of that kind, for what is evaluated again and again; a count of 0 takes it
  // back. Goes with the next chunk.
  void SetRemark(RemarkKind kind, uint64_t count, std::vector<std::string> details);
  // Where the source's own numbering stands behind the record at `position`, for cursors: it goes
  // with the chunks closed behind that record, and one is closed even if nothing else is to be
  // told.
  void SetSequenceMark(uint64_t position, uint64_t mark);

  // Between records; `position` is that of the next one. Tick closes a chunk that is old enough,
  // and sends a canary where one is due; Flush closes any that is open. End closes the last one,
  // whatever is in it; what comes later is counted and dropped.
  void Tick(uint64_t position);
  void Flush(uint64_t position);
  void End(uint64_t position);

  bool ended() const { return ended_; }
  // Ended, and every chunk is stored by the aggregator or lost.
  bool finished() const { return ended_ && unsettled_chunks_ == 0; }
  // The record that holds the first row or loss that is not durable, on this node or at the
  // aggregator; nothing if all is. Its source must keep that record and those behind it.
  std::optional<uint64_t> first_undurable_position() const;
  const Counts& counts() const { return counts_; }
  const StreamIdentity& stream() const { return stream_; }

 private:
  struct InFlight {  // not durable
    uint64_t sequence = 0;
    uint64_t first_position = 0;
    bool done = false;
  };

  // Counts the next row of a record; false if it is to be passed over.
  bool AdmitRow(uint64_t position);
  void CountRow(uint64_t position);
  absl::Status TryAppend(const CachedShape& shape, const EventFields& fields,
                         std::span<const AttributeValue> values);
  void NoteOpen(uint64_t position);
  void PutLoss(uint64_t position, Loss loss);
  void MarkRemarkChanged(RemarkKind kind);
  std::vector<Remark> TakeRemarks(bool end_of_stream);
  bool LargeEnough();
  void Close(uint64_t position, uint32_t skip, bool end_of_stream);
  ChunkHeader NewHeader() const;
  void SendCanaryIfDue();
  void OnCanaryReceipt(uint64_t sent_ns, const ChunkSink::Receipt& receipt);
  void Submit(ChunkHeader header, std::string columns);
  void OnReceipt(uint64_t sequence, uint32_t events, const ChunkSink::Receipt& receipt);
  void LetGo(uint64_t sequence);

  // Constant after construction.
  const CaptureId capture_id_;
  const StreamIdentity stream_;
  const Options options_;
  const Clock& clock_;
  ChunkSink& sink_;
  AgentSourceMetrics& metrics_;

  std::vector<RankEvidence> rank_evidence_;
  std::vector<Remark> remarks_;
  std::vector<RemarkKind> changed_remarks_;  // since the last chunk
  uint64_t next_sequence_ = 0;
  uint64_t resume_position_ = 0;
  uint32_t resume_skip_ = 0;
  // What the last chunk said of its source.
  uint64_t closed_position_ = 0;
  uint32_t closed_skip_ = 0;
  uint64_t closed_mark_ = 0;
  uint64_t sequence_mark_ = 0;  // for the next one
  bool ended_ = false;
  Counts counts_;
  // The stream's account up to the next chunk.
  uint64_t events_before_ = 0;
  std::vector<Loss> losses_before_;

  // The record at hand.
  uint64_t row_position_ = 0;
  uint32_t rows_in_record_ = 0;

  // The open chunk.
  EventChunkBuilder builder_;
  std::vector<EventChunkBuilder::ShapeId> shape_ids_;  // by CachedShape::number
  uint32_t shape_generation_ = 0;
  std::vector<Loss> losses_;
  std::optional<uint64_t> first_position_;
  uint64_t opened_ns_ = 0;  // monotonic
  size_t text_bytes_since_look_ = 0;

  std::deque<InFlight> in_flight_;
  uint64_t unsettled_chunks_ = 0;  // neither stored nor lost
  CanaryWatch::Entry canary_entry_;
  uint64_t canary_due_ns_;  // monotonic
  bool canary_under_way_ = false;
  // Receipts hold it weakly, so that one that comes late finds nobody.
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
