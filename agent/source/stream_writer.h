// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "agent/source/canary_watch.h"
#include "agent/source/chunk_sink.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source_metrics.h"
#include "lib/base/clock.h"
#include "lib/base/weak_tasks.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/limits.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/suspension.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Returns how many rows went into the chunks before a cursor, plus those that no chunk could hold.
// Pure.
uint64_t EventsRead(const StreamCursor& cursor);

// Turns the rows of one stream into chunks: numbers them, closes a chunk by count, size or age, and
// knows which part of its source is not durable yet. On the agent's sequence, as the sink.
//
// A source is a sequence of records at ascending positions (records of a tap's ring, elements of a
// file), read in order. A record may give rows to many streams, any number to each, and always the
// same ones when it is read again. The rows of a record come by Append and LoseEvent, then what was
// lost in the record as a whole by AddLoss. After a restart with the cursor of the last stored
// chunk, everything that this chunk and earlier ones hold is passed over, rows and losses alike; so
// every row and every loss is stored exactly once
// (docs/decisions/0006-exactly-once-from-the-ring.md,
// docs/decisions/0008-every-chunk-carries-its-streams-account.md). docs/formats/chunk.md has the
// bytes.
//
// Nothing here fails: an event that fits into no chunk becomes a counted loss in the stream itself.
class StreamWriter {
 public:
  struct Options {
    uint32_t chunk_events = limits::kChunkEventsTarget;
    // Size of the columns before compression, which reduces them to a third or less.
    size_t chunk_columns_bytes = 3 * limits::kChunkBytesTarget;
    uint64_t chunk_age_ns = limits::kChunkAgeMaxNs;
    ClockDomain clock_domain = ClockDomain::kHostRealtime;
  };
  // Counts of one stream, over all runs of the agent unless a field says otherwise.
  struct Counts {
    uint64_t read = 0;    // rows taken, by an earlier run of the agent, too
    uint64_t stored = 0;  // of these, in chunks that the aggregator has stored
    uint64_t bytes = 0;   // of chunks, encoded; by this run of the agent
    uint64_t lost = 0;    // in losses of a known number, and in refused chunks
    bool lost_unknown = false;
    // True if the chunk that ends the stream was given up, so the aggregator learns of no loss.
    bool given_up = false;
  };

  // Clock, sink and metrics outlive the writer. Receipts may come after it was destroyed.
  StreamWriter(const CaptureId& capture_id, StreamIdentity stream, const Clock& clock,
               ChunkSink& sink, AgentSourceMetrics& metrics)
      : StreamWriter(capture_id, std::move(stream), clock, sink, metrics, Options()) {}
  StreamWriter(const CaptureId& capture_id, StreamIdentity stream, const Clock& clock,
               ChunkSink& sink, AgentSourceMetrics& metrics, const Options& options);
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  // Continues behind what the store holds. To be called before any other function.
  void Resume(const StreamCursor& cursor);
  // Sets the evidence that goes into every chunk closed from now on; best first. More than
  // limits::kRankEvidencePerStreamMax is cut.
  void SetRankEvidence(std::vector<RankEvidence> evidence);

  // Adds the next row of the record at `position`. The shape and the values are copied.
  void Append(uint64_t position, const CachedShape& shape, const EventFields& fields,
              std::span<const AttributeValue> values);
  // Counts a loss in place of a row: an event that no chunk can hold.
  void LoseEvent(uint64_t position, uint64_t timestamp_ns, std::string_view why);
  // Takes the place of a row that is not wanted now. Rows are identified by their place among all
  // rows of their record, so this keeps the numbers of the others if the record is read again and
  // the row is then wanted.
  void PassOver(uint64_t position) { CountRow(position); }
  // Adds a loss of the record at `position` as a whole, after its rows.
  void AddLoss(uint64_t position, Loss loss);
  // Adds a report of a suspension, found at `position`. One without usable times is counted and
  // dropped.
  void AddSuspension(uint64_t position, const Suspension& suspension);
  // Counts one more remark of that kind, with a place and a reason for people. A source that reads
  // again from the beginning after a restart calls it again, so that the counts of a writer are
  // those of the whole source up to here.
  void AddRemark(uint64_t position, RemarkKind kind, std::string_view detail);
  // Replaces the remark of that kind, for a source that evaluates it repeatedly; a count of 0
  // withdraws it. It goes with the next chunk.
  void SetRemark(RemarkKind kind, uint64_t count, std::vector<std::string> details);
  // Sets the source's own numbering after the record at `position`, for cursors. It goes with the
  // chunks closed after that record, and makes one even if there is nothing else to store.
  void SetSequenceMark(uint64_t position, uint64_t mark);

  // To be called between records; `position` is that of the next one. Tick closes a chunk that is
  // old enough and sends a canary if one is due. Flush closes any open chunk. End closes the last
  // chunk, whatever is in it; what comes later is counted and dropped.
  void Tick(uint64_t position);
  void Flush(uint64_t position);
  void End(uint64_t position);

  bool ended() const { return ended_; }
  // Returns true once the stream has ended and every chunk is stored by the aggregator or lost.
  bool finished() const { return ended_ && unsettled_chunks_ == 0; }
  // Returns the position of the record with the first row or loss that is not durable, on this node
  // or at the aggregator; nothing if all is. The source must keep that record and all later ones.
  std::optional<uint64_t> first_undurable_position() const;
  const Counts& counts() const { return counts_; }
  const StreamIdentity& stream() const { return stream_; }

 private:
  struct InFlight {  // not durable
    uint64_t sequence = 0;
    uint64_t first_position = 0;
    bool done = false;
  };

  // Counts the next row of a record; returns false if it is to be passed over. Rows before the
  // resumed place are stored already; rows after the end are dropped and counted.
  bool AdmitRow(uint64_t position);
  void CountRow(uint64_t position);
  // Fails with RESOURCE_EXHAUSTED if the row does not fit into the open chunk.
  absl::Status TryAppend(const CachedShape& shape, const EventFields& fields,
                         std::span<const AttributeValue> values);
  // Records the position and the time at which the open chunk got its first content.
  void RecordOpen(uint64_t position);
  // Merges the loss with one of the same kind, so that the number of losses in a chunk stays
  // bounded.
  void PutLoss(uint64_t position, Loss loss);
  // Remarks that changed go with the next chunk; the last chunk has all of them.
  void MarkRemarkChanged(RemarkKind kind);
  std::vector<Remark> TakeRemarks(bool end_of_stream);
  // Returns true if the open chunk is to be closed by its number of rows or its size.
  bool LargeEnough();
  // Closes the open chunk. `position` and `skip` are where the stream continues: at the record,
  // after so many of its rows.
  void Close(uint64_t position, uint32_t skip, bool end_of_stream);
  // Returns a header with what all chunks of the stream share, and its account so far.
  ChunkHeader NewHeader() const;
  void SendCanaryIfDue();
  void OnCanaryReceipt(uint64_t sent_ns, const ChunkSink::Receipt& receipt);
  void Submit(ChunkHeader header, std::string columns);
  void OnReceipt(uint64_t sequence, uint32_t events, const ChunkSink::Receipt& receipt);
  // The chunk is durable or lost: its records may be released once earlier chunks are, too.
  void ReleaseForDeletion(uint64_t sequence);

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
  std::vector<Suspension> suspensions_;
  std::optional<uint64_t> first_position_;
  uint64_t opened_ns_ = 0;  // monotonic
  size_t text_bytes_since_check_ = 0;

  std::deque<InFlight> in_flight_;
  // finished() waits for these; durable chunks of this node are among them.
  uint64_t unsettled_chunks_ = 0;  // neither stored nor lost
  CanaryWatch::Entry canary_entry_;
  uint64_t canary_due_ns_;  // monotonic
  bool canary_in_flight_ = false;
  // Receipts hold a weak reference, so that a late one does nothing.
  WeakTasks weak_tasks_;
};

}  // namespace neurontrace
