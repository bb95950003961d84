// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// One stream of a capture, as a reader sees it before it opens a chunk: whose events it has, how
// much of it is stored, and what is missing. A plain value; times are raw, in nanoseconds.
struct StreamDescription {
  // Names the stream in calls of ChunkSource. Its index in CaptureDescription::streams may differ.
  uint32_t number = 0;
  StreamIdentity identity;
  // The job that the stream's worker named; empty if it named none.
  std::string job;
  ClockDomain clock_domain = ClockDomain::kHostRealtime;
  // Returns whether its times count from an unknown moment, so that no clock map applies to them.
  bool has_own_time() const { return clock_domain == ClockDomain::kOwn; }
  // Every distinct claim about the worker's rank. BestEvidence chooses among them.
  std::vector<RankEvidence> evidence;
  // Everything that is missing, summed by place and reason.
  std::vector<Loss> losses;
  // The longest of these losses one by one, with their times.
  std::vector<Loss> gaps;
  // When the capture was suspended in the stream's worker, which is no loss, in the order of time.
  std::vector<Suspension> suspensions;
  uint64_t chunks = 0;
  // Its chunks have sequences in [first_sequence, next_sequence); some may be missing.
  uint64_t first_sequence = 0;
  uint64_t next_sequence = 0;
  uint64_t events = 0;
  uint64_t first_timestamp_ns = 0;  // raw; both are 0 if there is no event
  uint64_t last_timestamp_ns = 0;
  uint64_t canary_ns = 0;           // raw; when the last canary was sent, 0: never
  bool process_has_ended = false;   // before the capture did
  bool has_closed_runtime = false;  // … and had closed the runtime, or exited, with nothing lost
  // Raw. No chunk of the stream spans more than this from its first to its last event, so that an
  // index ordered by last timestamps bounds the first timestamps to come.
  uint64_t chunk_span_max_ns = 0;
};

// A capture as a reader sees it before it opens a chunk. A plain value.
struct CaptureDescription {
  CaptureId id;
  std::string name;
  std::vector<std::string> warnings;
  std::vector<StreamDescription> streams;
};

// A stop event without a start before it in its own chunk: its span began in an earlier chunk, or
// its start is lost. The store keeps these in the index, so that the end of a long span is found
// without reading the chunks in between.
struct ForeignStop {
  uint64_t type_hash = 0;  // HashEventType
  uint64_t tracking_id = 0;
  uint64_t timestamp_ns = 0;  // raw
};
// Returns the FNV-1a hash of an event type. Different types may collide; a collision with the same
// tracking id in one stream pairs a start with a wrong stop, which is improbable enough.
uint64_t HashEventType(std::string_view event_type);

// One line of a stream's index: what is known of a chunk without reading it. A plain value.
struct ChunkEntry {
  uint64_t sequence = 0;
  uint64_t first_timestamp_ns = 0;  // raw
  uint64_t last_timestamp_ns = 0;   // raw
  uint32_t event_count = 0;
  std::vector<ForeignStop> foreign_stops;
  // Each type once, those of metadata events included. nullopt if they are not known: then the
  // chunk may have events of any type.
  std::optional<std::vector<std::string>> event_types = {};
};

// A place in a stream's index, which is ordered by (last timestamp, sequence).
struct IndexPosition {
  uint64_t last_timestamp_ns = 0;
  uint64_t sequence = 0;
};

// The place that a timeline reads a stored capture from: the edge to the store (and, for a capture
// on several aggregators, to theirs). Tests implement it without a database. Calls may block on
// disk. Used by one thread at a time.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  // Returns the capture and its streams as they are stored now. Fails with the source's error.
  virtual absl::StatusOr<CaptureDescription> Describe() = 0;

  // Replaces `entries` by up to `entries_max` of the stream's chunks that hold events, in the order
  // of (last timestamp, sequence), starting with the first at or after `from`. Fewer than
  // `entries_max` entries mean the end of the index.
  virtual absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                                 std::vector<ChunkEntry>& entries) = 0;

  // Replaces `columns` by the uncompressed columns of one chunk. Fails with NOT_FOUND or DATA_LOSS
  // if the chunk is gone or damaged: readers skip it. Other errors are those of the source and end
  // a reading.
  virtual absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) = 0;

  // Called by a reader that omits this chunk, because ReadColumns failed or the columns cannot be
  // decoded. A store remembers it for the capture's certificate; the default does nothing.
  virtual void ReportUnreadable(uint32_t /*stream*/, uint64_t /*sequence*/,
                                const absl::Status& /*why*/) {}
};

}  // namespace neurontrace
