// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/suspension.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// The account of one stream of one capture, summed over its chunks. Changes in the same write as
// they do, so both agree after any crash. A plain value; timestamps are raw, in ns.
struct StreamRecord {
  uint32_t number = 0;  // of the stream in its capture; numbers may have holes
  StreamIdentity identity;
  uint64_t next_sequence = 0;    // the cursor: the sequence expected next
  uint64_t source_position = 0;  // of the last chunk, meaningful to its producer
  uint32_t source_skip = 0;
  uint64_t sequence_mark = 0;  // of the last chunk
  bool ended = false;          // the last chunk was the stream's final one
  uint64_t chunks = 0;         // stored; without canaries, as is `bytes`
  uint64_t events = 0;         // stored
  uint64_t captured = 0;       // put into chunks by the producer, stored or lost on the way
  uint64_t bytes = 0;          // headers and compressed columns
  // Becomes kOwn with the first chunk that says so and stays so: the stream's times are then never
  // compared with those of others.
  ClockDomain clock_domain = ClockDomain::kHostRealtime;
  uint64_t first_timestamp_ns = 0;  // both are 0 while there is no event
  uint64_t last_timestamp_ns = 0;
  uint64_t chunk_span_max_ns = 0;      // the longest time from a chunk's first event to its last
  std::vector<Loss> losses;            // summed by place and reason
  std::vector<Loss> told;              // those reported by the producer itself; without times
  std::vector<RankEvidence> evidence;  // of the newest chunk, best first; may be empty
  uint64_t canary_realtime_ns = 0;     // when the last canary was sent; 0: never
  uint64_t canary_sequence = 0;        // of the last canary
  // Single losses that have times, without details, in the order of time. Keeps the longest
  // limits::kGapsPerStreamMax.
  std::vector<Loss> gaps;
  uint64_t gaps_count = 0;   // of all with a length, kept or not
  uint64_t gaps_sum_ns = 0;  // length of their union, exact if they came in the order of time
  uint64_t gaps_end_ns = 0;  // the latest end
  // Retention has deleted the chunks before this sequence. Their events are a loss of place
  // retention and reason expired, and are in none of the sums above except `captured`.
  uint64_t first_sequence = 0;
  uint64_t expired_chunks = 0;
  uint64_t expired_bytes = 0;
  std::vector<Remark> remarks;  // the newest of each kind
  // When the capture was suspended in the worker for another one, which is no loss, in the order of
  // time. Keeps limits::kSuspensionsPerStreamMax (AddSuspension).
  std::vector<Suspension> suspensions;
  uint64_t suspensions_count = 0;  // of all, kept or not
  // The job of the stream's worker, empty if unknown. Not stored: CaptureReader::Streams fills it
  // in from the latest report of the worker's agent.
  std::string job;

  friend bool operator==(const StreamRecord&, const StreamRecord&) = default;

  uint64_t events_lost() const;     // without expired events
  bool has_unknown_losses() const;  // lost events of unknown number, expiry excluded
  uint64_t events_expired() const;  // stored, and deleted by retention as configured
  // Returns what the producer needs in order to continue after a restart.
  StreamCursor Cursor() const;
  // Adds one chunk to the sums and moves the cursor behind it. Events that the chunk's account
  // counts and this record does not are booked as lost: with the place and reason of `gone`, or
  // else at an unknown place on the way.
  void Add(const ChunkHeader& header, uint64_t chunk_bytes,
           const std::optional<PrecedingGap>& gone);

  // Returns whether captured = events + losses on the way, with each event counted once; true if a
  // loss of unknown number makes that undecidable.
  bool Conserved() const;

 private:
  // Books what the chunk's account has in addition.
  void RecordMissing(const ChunkHeader& header, const std::optional<PrecedingGap>& gone);
  // Adds a loss to the sums and, if it has times, to the gaps.
  void Book(const Loss& loss);
  void RecordGap(const Loss& loss);
};

// Encode and decode the value of family `streams`; the number is in the key. Decoding fails with
// DATA_LOSS for anything that encoding does not write.
std::string EncodeStreamRecord(const StreamRecord& record);
absl::StatusOr<StreamRecord> DecodeStreamRecord(uint32_t number, std::string_view value);

}  // namespace neurontrace
