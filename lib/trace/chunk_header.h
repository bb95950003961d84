// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lib/trace/ids.h"
#include "lib/trace/loss.h"
#include "lib/trace/rank_evidence.h"
#include "lib/trace/remark.h"
#include "lib/trace/suspension.h"

namespace neurontrace {

// The clock of a stream's timestamps. Values are on the wire: never change one.
enum class ClockDomain : uint8_t {
  kUnspecified = 0,
  kHostRealtime = 1,
  // ns since an unknown moment, such as a profiler's start: comparable with no other stream.
  // Framework streams only.
  kOwn = 2,
};

// The facts about a chunk that accompany its columns: the fields of neurontrace.v1.ChunkHeader,
// which proto/neurontrace/v1/chunk.proto documents. A plain value; a header from the wire is
// checked when it is converted.
struct ChunkHeader {
  CaptureId capture_id;
  StreamIdentity stream;
  // The chunk's number in its stream, from 0, and its events.
  uint64_t sequence = 0;
  uint32_t event_count = 0;
  uint64_t first_timestamp_ns = 0;
  uint64_t last_timestamp_ns = 0;
  ClockDomain clock_domain = ClockDomain::kHostRealtime;
  std::vector<RankEvidence> rank_evidence;
  // Events lost within this chunk, or between the previous one and this.
  std::vector<Loss> losses;
  std::string producer_version;
  // How far the producer had read its source when it closed the chunk, for its successor after a
  // restart. The receiver does not interpret these values.
  uint64_t source_position = 0;
  uint32_t source_skip = 0;
  bool end_of_stream = false;
  uint32_t columns_bytes = 0;
  // The stream's account: the events and losses of all chunks before this one, so that a receiver
  // can compute what it misses.
  uint64_t events_before = 0;
  std::vector<Loss> losses_before;
  // Set if this chunk takes the place of one whose events are lost.
  std::optional<Loss> replaced;
  uint64_t canary_realtime_ns = 0;
  uint64_t sequence_mark = 0;
  // Remarks that are new or changed since the chunk before; the last chunk repeats all of them.
  std::vector<Remark> remarks;
  // Suspensions of the capture in this worker that are new or have grown since the chunk before.
  std::vector<Suspension> suspensions;

  // Returns whether the chunk is a canary: it has no events, and its acknowledgement proves that
  // the way to the store is open.
  bool is_canary() const { return canary_realtime_ns != 0; }
  // Returns the number of events that this chunk has, or had before it was replaced.
  uint64_t events_accounted() const { return event_count + (replaced ? replaced->events : 0); }

  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};

// Where and why the chunks between a receiver's cursor and a received chunk were lost.
struct PrecedingGap {
  LossPlace place = LossPlace::kSpool;
  LossReason reason = LossReason::kUnknown;

  friend bool operator==(const PrecedingGap&, const PrecedingGap&) = default;
};

// A header with its zstd-compressed columns: the unit that a producer sends and a store keeps.
struct Chunk {
  ChunkHeader header;
  std::string columns;
};

}  // namespace neurontrace
