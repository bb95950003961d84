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

namespace neurontrace {

// One stream of a capture, as a reader sees it before it opens a chunk. A plain value.
struct StreamDescription {
  uint32_t number = 0;  // names the stream in the calls of ChunkSource
  StreamIdentity identity;
  std::string job;  // of its worker; empty: it names none
  ClockDomain clock_domain = ClockDomain::kHostRealtime;
  // Its times count from a moment that nobody knows.
  bool has_own_time() const { return clock_domain == ClockDomain::kOwn; }
  std::vector<RankEvidence> evidence;  // every different claim seen
  std::vector<Loss> losses;            // summed by place and reason
  std::vector<Loss> gaps;              // of these, the longest one by one, with their times
  uint64_t chunks = 0;
  uint64_t events = 0;
  uint64_t first_timestamp_ns = 0;  // raw; both 0 where there is no event
  uint64_t last_timestamp_ns = 0;
  uint64_t chunk_span_max_ns = 0;  // raw: at least last - first of each of its chunks
};

struct CaptureDescription {
  CaptureId id;
  std::string name;
  std::vector<std::string> warnings;
  std::vector<StreamDescription> streams;
};

// A stop event whose start does not precede it in the same chunk.
struct ForeignStop {
  uint64_t type_hash = 0;  // HashEventType
  uint64_t tracking_id = 0;
  uint64_t timestamp_ns = 0;  // raw
};
uint64_t HashEventType(std::string_view event_type);

// What is known of a chunk without reading it.
struct ChunkEntry {
  uint64_t sequence = 0;
  uint64_t first_timestamp_ns = 0;  // raw
  uint64_t last_timestamp_ns = 0;   // raw
  uint32_t event_count = 0;
  std::vector<ForeignStop> foreign_stops;
  // Each once, those of metadata too; nothing where they are not known: then it may have any.
  std::optional<std::vector<std::string>> event_types = {};
};

// A place in a stream's index.
struct IndexPosition {
  uint64_t last_timestamp_ns = 0;
  uint64_t sequence = 0;
};

// Where a timeline reads a stored capture from: the edge to the store (and, where a capture lies on
// several aggregators, to theirs), and the reason why tests need no database. Calls may block on
// disk. One thread at a time.
class ChunkSource {
 public:
  virtual ~ChunkSource() = default;

  virtual absl::StatusOr<CaptureDescription> Describe() = 0;

  // Clears `entries` and reads up to `entries_max` of the stream's chunks that hold events, in the
  // order of (last timestamp, sequence), the first being the one at or after `from`. Fewer than
  // entries_max: there are no more.
  virtual absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                                 std::vector<ChunkEntry>& entries) = 0;

  // The uncompressed columns of one chunk. DATA_LOSS where it is gone or cannot be read.
  virtual absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) = 0;

  // A reader has left out this chunk, because ReadColumns failed or the columns cannot be decoded.
  // A store remembers it for the capture's certificate.
  virtual void ReportUnreadable(uint32_t /*stream*/, uint64_t /*sequence*/,
                                const absl::Status& /*why*/) {}
};

}  // namespace neurontrace
