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
#include "lib/trace/worker_info.h"

namespace neurontrace {

// What is stored of one stream of one capture, summed over its chunks; moves in the same write as
// the chunks. A plain value.
struct StreamRecord {
  uint32_t number = 0;  // of the stream in its capture; numbers can have holes
  StreamIdentity identity;
  uint64_t next_sequence = 0;
  uint64_t source_position = 0;  // of the last chunk, as its producer wrote it
  uint32_t source_skip = 0;
  uint64_t sequence_mark = 0;  // of the last chunk
  bool ended = false;          // its last chunk said that nothing follows
  uint64_t chunks = 0;         // without canaries, like `bytes`
  uint64_t events = 0;
  uint64_t captured = 0;  // that its producer put into chunks, stored or lost on the way
  uint64_t bytes = 0;     // headers and compressed columns
  // kOwn as soon as one chunk says so: never again is the stream compared with others.
  ClockDomain clock_domain = ClockDomain::kHostRealtime;
  uint64_t first_timestamp_ns = 0;  // raw; both 0 while there is no event
  uint64_t last_timestamp_ns = 0;
  uint64_t chunk_span_max_ns = 0;      // longest time from a chunk's first event to its last
  std::vector<Loss> losses;            // summed by place and reason
  std::vector<Loss> told;              // of these, what the producer itself found lost; no times
  std::vector<RankEvidence> evidence;  // of the newest chunk, best first; empty: no claim
  uint64_t canary_realtime_ns = 0;     // when the last canary was sent; 0: none came
  uint64_t canary_sequence = 0;        // of that
  // Losses one by one, without words: of those that have times the longest, in the order of time.
  // At most limits::kGapsPerStreamMax.
  std::vector<Loss> gaps;
  uint64_t gaps_count = 0;   // all that have a length
  uint64_t gaps_sum_ns = 0;  // their union, as far as they came in the order of time
  uint64_t gaps_end_ns = 0;  // of the latest
  // Chunks before this sequence have expired: retention has deleted them. Their events are a loss
  // of place retention and reason expired, and in none of the sums above but `captured`.
  uint64_t first_sequence = 0;
  uint64_t expired_chunks = 0;
  uint64_t expired_bytes = 0;
  std::vector<Remark> remarks;  // the newest of each kind
  // The job of the stream's worker, empty where unknown. Not stored here: CaptureReader::Streams
  // fills it in from what the worker's agent says.
  std::string job;

  friend bool operator==(const StreamRecord&, const StreamRecord&) = default;

  uint64_t events_lost() const;     // without those that have expired
  bool has_unknown_losses() const;  // the same
  uint64_t events_expired() const;  // which were stored, and deleted as it was wanted
  StreamCursor Cursor() const;
  // Takes one more chunk into the sums and moves the cursor behind it. What the chunk's account
  // has and this record has not is lost: where `gone` says, else at an unknown place of the way.
  void Add(const ChunkHeader& header, uint64_t chunk_bytes,
           const std::optional<PrecedingGap>& gone);

  // captured = events + losses on the way, each counted once.
  bool Conserved() const;

 private:
  void BookMissing(const ChunkHeader& header, const std::optional<PrecedingGap>& gone);
  void Book(const Loss& loss);
  void NoteGap(const Loss& loss);
};

// The value of family `streams`; the number is in the key. Decode returns DATA_LOSS for
// anything that Encode does not write.
std::string EncodeStreamRecord(const StreamRecord& record);
absl::StatusOr<StreamRecord> DecodeStreamRecord(uint32_t number, std::string_view value);

}  // namespace neurontrace
