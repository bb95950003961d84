// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/derive/arrivals.h"
#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/busy_share_sums.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/duration_sketch.h"
#include "aggregator/derive/duration_stats.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/steps.h"

namespace neurontrace {

// The following plain values are the figures of a capture, which docs/formats/derived.md defines.
// CaptureSummaryBuilder fills them in; `stream` is an index into CaptureSummary::streams. Times are
// reference time in nanoseconds.

// One stream, described for people.
struct SummaryStream {
  StreamIdentity identity;
  std::optional<int64_t> worker_gid;
  // "gid7", with a distinction if two streams claim it; empty if it is not known.
  std::string rank_label;  // "gid7"; says which where two claim it; empty: unknown
  // Events recorded, whatever the filter.
  uint64_t events = 0;
  // Events known to be missing; lost_unknown adds losses that nobody could count.
  uint64_t lost = 0;
  bool lost_unknown = false;  // besides these there are losses that nobody could count
  // The error bound of its host's stamps over the whole stream; nullopt if it is not known.
  std::optional<uint64_t> clock_bound_ns;
};

// Executions of one core, together.
struct ExecutionRow {
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;
  DurationSketch durations;  // end - start; those with an end
  // From the runtime's preparation (kbl_exec_pre) to the start.
  DurationSketch latencies;
  uint64_t open = 0;
};

// Steps of one core or framework, together.
struct StepRow {
  uint32_t stream = 0;
  StepSource source = StepSource::kExecution;
  DurationSketch durations;
  DurationSketch intervals;  // from the start of one to the start of the next
  uint64_t first_number = 0;
  uint64_t last_number = 0;
};

// The collectives of one communicator together.
struct CommunicatorRow {
  Communicator communicator;
  uint64_t collectives = 0;        // of two members and more, without the disjoint ones
  uint64_t single = 0;             // of one member
  uint64_t disjoint = 0;           // whose members cannot have met
  uint64_t incomplete = 0;         // from which a member is absent
  DurationSketch arrival_skew;     // of those in `collectives`: last arrival - first
  DurationSketch durations;        // the same: from the last arrival to the last end
  uint64_t skew_known = 0;         // of these: the skew is more than the clocks' bound
  uint64_t skew_bound_max_ns = 0;  // the largest bound of a skew
  // Skews without a known error bound.
  uint64_t skew_unbounded = 0;
};

// The use of one device memory.
struct MemoryRow {
  HbmIdentity memory;
  uint64_t samples = 0;
  uint64_t last_total_bytes = 0;
  uint64_t peak_total_bytes = 0;
  uint64_t peak_ns = 0;  // when
  // The peak of each category by itself.
  std::array<uint64_t, kHbmCategories> peak_category_bytes = {};
};

// Transfers of one core in one direction.
struct BandwidthRow {
  uint32_t stream = 0;
  TransferDirection direction = TransferDirection::kHostToDevice;
  double bytes = 0;
  double peak_bytes_per_second = 0;  // in one bin
  uint64_t peak_ns = 0;              // that bin's start
};

// Everything that a summary shows.
struct CaptureSummary {
  CaptureId id;
  std::string name;
  // From the first record's start to the latest end, inside the filter's window; both 0 if there is
  // no record.
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t window_ns() const { return end_ns - begin_ns; }

  std::vector<SummaryStream> streams;
  uint64_t instances = 0;
  uint64_t workers = 0;  // processes
  uint64_t cores = 0;

  // Of the reading; set by the caller that read.
  TimelineCounts counts;
  std::vector<DurationRow> durations;  // by event type, stream
  // `durations` summed over streams; `stream` is meaningless.
  std::vector<DurationRow> event_types;
  std::vector<ExecutionRow> executions;  // by stream, source
  std::vector<Execution> slowest;        // device executions, the longest first
  std::vector<BusyShare> busy;           // by stream; BusyShare::Of(window_ns())
  std::vector<StepRow> steps;            // by stream
  std::vector<CommunicatorRow> communicators;
  // The largest arrival skew first; without disjoint ones.
  std::vector<Collective> worst_collectives;
  // The largest sum of lateness first.
  std::vector<ArrivalRow> arrivals;
  std::vector<MemoryRow> memory;
  std::vector<BandwidthRow> bandwidth;  // by stream, direction
  std::vector<Loss> losses;             // of all streams, by place and reason

  // What limits omitted, and why a figure is missing.
  ExecutionCounts execution_counts;
  StepCounts step_counts;
  CollectiveCounts collective_counts;
  HbmCounts hbm_counts;
  BandwidthCounts bandwidth_counts;
  uint64_t duration_overflow = 0;      // events counted under "(other)"
  uint64_t communicator_overflow = 0;  // events beyond CommunicatorTable::kCommunicatorsMax
  // Sentences about the counts above.
  std::vector<std::string> warnings;
};

}  // namespace neurontrace
