// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/steps.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// Count, sum, extremes and quantiles of durations in bounded memory. Values below 16 ns are kept
// exactly. Larger ones go into bins, 16 for each power of two, as in HdrHistogram
// (http://hdrhistogram.org), so that a quantile is off by at most 1/32 of itself. At most 976 bins,
// and only those in use. A plain value; two can be merged.
class DurationSketch {
 public:
  void Add(uint64_t duration_ns);
  // The result is the same as if all values had been added to one sketch.
  void Merge(const DurationSketch& other);

  uint64_t count() const { return count_; }
  // Saturates at UINT64_MAX.
  uint64_t sum_ns() const { return sum_ns_; }
  uint64_t min_ns() const { return count_ == 0 ? 0 : min_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  uint64_t mean_ns() const { return count_ == 0 ? 0 : sum_ns_ / count_; }
  // Returns the duration that the fraction `q` (0 to 1) of all does not exceed: the middle of its
  // bin, but never beyond the extremes. Returns 0 if there is none.
  uint64_t QuantileNs(double q) const;

 private:
  struct Bin {
    uint16_t number = 0;
    uint64_t count = 0;
  };
  // Keeps bins_ sorted; `latest_` is only a hint.
  void AddTo(uint16_t bin, uint64_t count);

  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t min_ns_ = UINT64_MAX;
  uint64_t max_ns_ = 0;
  std::vector<Bin> bins_;  // ascending in number
  // Index of the bin used last: the next value often falls into the same.
  size_t latest_ = 0;
};

// How one core met the others in collectives. A plain value.
struct StragglerRow {
  uint32_t stream = 0;
  // Those that it was in with others.
  uint64_t collectives = 0;
  // Those of them in which it arrived last.
  uint64_t last = 0;
  // Those of `last` in which this is certain despite the clocks' bound.
  uint64_t last_known = 0;
  // Behind the median arrival, for those in last_known.
  DurationSketch lateness;
  // The largest error bound of these.
  uint64_t lateness_bound_max_ns = 0;
  // Those in last_known without a known error bound.
  uint64_t lateness_unbounded = 0;
  // From its arrival to that of the last one, for all in `collectives`.
  DurationSketch waits;
  // Collectives that it was missing from.
  uint64_t absent = 0;
};

// Counts who arrives last in collectives. Skips those of one member and those whose members cannot
// have met. Used by one thread at a time.
class Stragglers {
 public:
  explicit Stragglers(size_t streams) : rows_(streams) {}

  void Add(const Collective& collective);
  // Returns the streams that were in any, or missing, with the largest sum of known lateness first.
  // `absences` are those of the CollectiveFinder. Called once.
  std::vector<StragglerRow> Finish(std::span<const uint64_t> absences);

 private:
  std::vector<StragglerRow> rows_;  // by stream
};

// What one stream had of one event type. A plain value.
struct DurationRow {
  std::string event_type;
  uint32_t stream = 0;
  // Spans with a known start and stop.
  DurationSketch spans;
  // Spans without a stop: not in `spans`.
  uint64_t open = 0;
  // Spans without a start: not in `spans`.
  uint64_t start_lost = 0;
  // Spans with an impossible length (kOddLength): not in `spans`.
  uint64_t odd = 0;
  uint64_t instants = 0;

  uint64_t count() const { return spans.count() + open + start_lost + odd + instants; }
};

// Durations by event type and stream. A span that a time window cuts counts with its whole length.
// Used by one thread at a time.
class DurationStats {
 public:
  // Beyond these limits events are counted under kOther: those of further types for each stream,
  // and those of further pairs of type and stream under kOtherStream.
  static constexpr size_t kTypesMax = 4'096;
  static constexpr size_t kRowsMax = 262'144;
  static constexpr const char* kOther = "(other)";
  static constexpr uint32_t kOtherStream = 0xffffffffu;

  // Records other than spans, instants and other events are skipped.
  void Take(const TimelineBatch& batch);
  // Returns the rows by event type, then stream. Called once.
  std::vector<DurationRow> Finish();
  // Events counted under kOther.
  uint64_t overflow() const { return overflow_; }

 private:
  // Returns the row to count in, which may be the common one of a limit.
  DurationRow& RowOf(const TimelineRecord& record);
  uint32_t TypeOf(const SharedShape& shape);

  absl::flat_hash_map<std::string, uint32_t> types_;
  std::vector<uint32_t> type_of_shape_;        // by SharedShape::number; 0: not known yet
  std::vector<std::vector<uint32_t>> row_of_;  // by stream, type: index + 1; 0: none
  std::vector<DurationRow> rows_;
  uint64_t overflow_ = 0;
};

// How much of a time window one core ran executions. A plain value.
struct BusyShare {
  uint32_t stream = 0;
  ExecutionSource source = ExecutionSource::kDevice;  // kRuntime: the device's events are missing
  uint64_t executions = 0;
  // The length of the union of their intervals, inside the window.
  uint64_t busy_ns = 0;
  uint64_t open = 0;  // executions without an end: not in busy_ns
  // Executions that came out of order beyond kIntervalsMax: their part before that is not in
  // busy_ns.
  uint64_t joined_late = 0;

  double Of(uint64_t window_ns) const {
    return window_ns == 0 ? 0 : static_cast<double>(busy_ns) / static_cast<double>(window_ns);
  }
};

// Sums the busy time of each core; executions that overlap count once. They must be added in the
// order in which ExecutionFinder returns them. Used by one thread at a time.
class BusyShareSums {
 public:
  // Intervals held for one core, because executions come in the order of their ends. Beyond, the
  // earliest is added to the sum.
  static constexpr size_t kIntervalsMax = 64;

  // Only what lies inside the window counts.
  BusyShareSums(size_t streams, uint64_t window_start_ns, uint64_t window_end_ns);

  // Cuts the execution to the window. An open one is only counted.
  void Add(const Execution& execution);
  // Returns a share for each core with an execution, by stream: that of the device if it has any.
  // Called once.
  std::vector<BusyShare> Finish();

 private:
  struct Interval {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  struct Sum {
    BusyShare share;
    std::vector<Interval> held;  // disjoint, ascending
    uint64_t summed_until_ns = 0;
  };
  // Adds an interval to the held ones and merges those that touch.
  static void Hold(Interval interval, Sum& sum);
  // Adds the earliest interval to the sum and forgets it.
  static void SumFirst(Sum& sum);

  const uint64_t window_start_ns_;
  const uint64_t window_end_ns_;
  std::vector<Sum> device_;
  std::vector<Sum> runtime_;
};

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
  std::vector<StragglerRow> stragglers;
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

// How much detail a summary has. The defaults are those of production.
struct SummaryOptions {
  size_t slowest_max = 20;
  size_t worst_collectives_max = 20;
  uint64_t bandwidth_bin_ns = Bandwidth::kBinNs;
  CommunicatorFacts communicators;
};

// Makes a summary in one pass: Take each batch in order, then Finish once. Memory is bounded by the
// limits of the parts, whatever the capture's length. Used by one thread at a time; the streams and
// the filter must outlive it.
class CaptureSummaryBuilder {
 public:
  // `filter` is that of the reading: only its window is used.
  CaptureSummaryBuilder(const CaptureDescription& capture, std::span<const TimelineStream> streams,
                        const TimelineFilter& filter, SummaryOptions options = {});
  ~CaptureSummaryBuilder();
  CaptureSummaryBuilder(const CaptureSummaryBuilder&) = delete;
  CaptureSummaryBuilder& operator=(const CaptureSummaryBuilder&) = delete;

  // Takes a preparation from before the first batch, see ExecutionFinder.
  void NotePreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                       std::string_view model_name);
  void Take(const TimelineBatch& batch);
  CaptureSummary Finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace neurontrace
