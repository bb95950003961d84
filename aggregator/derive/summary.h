// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/busy_share.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/duration_stats.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/steps.h"
#include "aggregator/derive/stragglers.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// What a capture holds, in figures: docs/formats/derived.md defines each. Plain values, filled by
// CaptureSummaryBuilder; `stream` is an index into CaptureSummary::streams. Times are reference
// time in ns.

// One stream, as people know it.
struct SummaryStream {
  StreamIdentity identity;
  std::optional<int64_t> worker_gid;
  std::string rank_label;     // "gid7"; says which where two claim it; empty: unknown
  uint64_t events = 0;        // recorded, whatever the filter
  uint64_t lost = 0;          // known not to be there
  bool lost_unknown = false;  // besides these there are losses that nobody could count
  // Of the stamps of its host's clock, over the whole stream; nullopt: not known.
  std::optional<uint64_t> clock_bound_ns;
};

// Executions of one core, together.
struct ExecutionRow {
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;
  DurationSketch durations;  // end - start; those with an end
  DurationSketch latencies;  // from the runtime's preparation (kbl_exec_pre) to the start
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

// Collectives of one communicator, together.
struct CommunicatorRow {
  Communicator communicator;
  uint64_t collectives = 0;        // of two members and more, without the disjoint ones
  uint64_t single = 0;             // of one member
  uint64_t disjoint = 0;           // whose members cannot have met
  uint64_t incomplete = 0;         // from which a member is absent
  DurationSketch arrival_skew;     // of those in `collectives`: last arrival - first
  DurationSketch durations;        // likewise: from the last arrival to the last end
  uint64_t skew_known = 0;         // of these: the skew is more than the clocks' bound
  uint64_t skew_bound_max_ns = 0;  // the largest bound of a skew
  uint64_t skew_unbounded = 0;     // skews of which no bound is known
};

struct MemoryRow {
  HbmIdentity memory;
  uint64_t samples = 0;
  uint64_t last_total_bytes = 0;
  uint64_t peak_total_bytes = 0;
  uint64_t peak_ns = 0;                                           // when
  std::array<uint64_t, kHbmCategories> peak_category_bytes = {};  // of each its own highest
};

struct BandwidthRow {
  uint32_t stream = 0;
  TransferDirection direction = TransferDirection::kHostToDevice;
  double bytes = 0;
  double peak_bytes_per_second = 0;  // in one bin
  uint64_t peak_ns = 0;              // that bin's start
};

struct CaptureSummary {
  CaptureId id;
  std::string name;
  // From the first record's start to the latest end of one, inside the filter's window. 0 and 0
  // where there is none.
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  uint64_t window_ns() const { return end_ns - begin_ns; }

  std::vector<SummaryStream> streams;
  uint64_t instances = 0;
  uint64_t workers = 0;  // processes
  uint64_t cores = 0;

  TimelineCounts counts;                 // of the reading; set by whoever read
  std::vector<DurationRow> durations;    // by event type, stream
  std::vector<DurationRow> event_types;  // the same, summed over streams; `stream` says nothing
  std::vector<ExecutionRow> executions;  // by stream, source
  std::vector<Execution> slowest;        // device executions, the longest first
  std::vector<BusyShare> busy;           // by stream; BusyShare::Of(window_ns())
  std::vector<StepRow> steps;            // by stream
  std::vector<CommunicatorRow> communicators;
  std::vector<Collective> worst_collectives;  // the largest arrival skew first; not disjoint
  std::vector<StragglerRow> stragglers;       // by lateness in all, the worst first
  std::vector<MemoryRow> memory;
  std::vector<BandwidthRow> bandwidth;  // by stream, direction
  std::vector<Loss> losses;             // of all streams, by place and reason

  // What limits left out, and why a figure is not there.
  ExecutionCounts execution_counts;
  StepCounts step_counts;
  CollectiveCounts collective_counts;
  HbmCounts hbm_counts;
  BandwidthCounts bandwidth_counts;
  uint64_t duration_overflow = 0;      // events counted under "(other)"
  uint64_t communicator_overflow = 0;  // events beyond CommunicatorTable::kCommunicatorsMax
  std::vector<std::string> warnings;   // in words, of the above
};

struct SummaryOptions {
  size_t slowest_max = 20;
  size_t worst_collectives_max = 20;
  uint64_t bandwidth_bin_ns = Bandwidth::kBinNs;
  CommunicatorFacts communicators;
};

// Makes a summary in one pass: Take each batch in order, then Finish once. Memory is bounded by the
// limits of the parts, whatever the capture's length. One thread at a time; what is given to the
// constructor must outlive it.
class CaptureSummaryBuilder {
 public:
  CaptureSummaryBuilder(const CaptureDescription& capture, std::span<const TimelineStream> streams,
                        const TimelineFilter& filter, SummaryOptions options = {});
  ~CaptureSummaryBuilder();
  CaptureSummaryBuilder(const CaptureSummaryBuilder&) = delete;
  CaptureSummaryBuilder& operator=(const CaptureSummaryBuilder&) = delete;

  // A preparation from before the first batch, as ExecutionFinder has it.
  void NotePreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                       std::string_view model_name);
  void Take(const TimelineBatch& batch);
  CaptureSummary Finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace neurontrace
