// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/summary_rows.h"

#include <algorithm>
#include <optional>
#include <tuple>

namespace neurontrace {
namespace {

// Returns the length of an execution in ns.
uint64_t LengthOf(const Execution& execution) { return execution.end_ns - execution.start_ns; }

// Keeps the `count_max` largest of the values pushed, in a min-heap. `is_larger(a, b)` returns
// whether a is larger than b.
template <typename T, typename Larger>
void KeepLargest(T&& value, size_t count_max, Larger is_larger, std::vector<T>& heap) {
  if (count_max == 0) return;
  if (heap.size() >= count_max) {
    if (!is_larger(value, heap.front())) return;
    std::pop_heap(heap.begin(), heap.end(), is_larger);
    heap.pop_back();
  }
  heap.push_back(std::move(value));
  std::push_heap(heap.begin(), heap.end(), is_larger);
}

// Equal lengths are ordered by start and stream, so that the table is the same in each export.
bool IsLonger(const Execution& a, const Execution& b) {
  return std::tuple(LengthOf(a), b.start_ns, b.stream) >
         std::tuple(LengthOf(b), a.start_ns, a.stream);
}

// Returns whether a has the larger skew; of equal ones, the earlier collective.
bool IsMoreSkewed(const Collective& a, const Collective& b) {
  return std::pair(a.arrival_skew_ns(), b.number) > std::pair(b.arrival_skew_ns(), a.number);
}

}  // namespace

// Only device executions can be among the slowest.
void ExecutionRows::Add(Execution&& execution) {
  ExecutionRow& row = rows_[{execution.stream, execution.source}];
  row.stream = execution.stream;
  row.source = execution.source;
  if (execution.is_open) {
    ++row.open;
    return;
  }
  row.durations.Add(LengthOf(execution));
  // By the clocks a preparation can follow the start; a negative latency would be meaningless.
  if (execution.prepared_ns && *execution.prepared_ns <= execution.start_ns) {
    row.latencies.Add(execution.start_ns - *execution.prepared_ns);
  }
  if (execution.source == ExecutionSource::kDevice) {
    KeepLargest(std::move(execution), slowest_max_, IsLonger, slowest_);
  }
}

void ExecutionRows::Finish(CaptureSummary& summary) {
  for (auto& [key, row] : rows_) summary.executions.push_back(std::move(row));
  std::sort(slowest_.begin(), slowest_.end(), IsLonger);
  summary.slowest = std::move(slowest_);
}

// Steps of one stream come in the order of their ends. Those that overlap give no interval.
void StepRows::Add(const Step& step) {
  const auto [at, is_new] = rows_.try_emplace({step.stream, step.source});
  Sum& sum = at->second;
  if (is_new) {
    sum.row.stream = step.stream;
    sum.row.source = step.source;
    sum.row.first_number = step.number;
  } else if (step.start_ns >= sum.latest_start_ns) {
    sum.row.intervals.Add(step.start_ns - sum.latest_start_ns);
  }
  sum.latest_start_ns = std::max(sum.latest_start_ns, step.start_ns);
  sum.row.last_number = step.number;
  if (!step.is_open) sum.row.durations.Add(step.end_ns - step.start_ns);
}

std::vector<StepRow> StepRows::Finish() {
  std::vector<StepRow> rows;
  for (auto& [key, sum] : rows_) rows.push_back(std::move(sum.row));
  return rows;
}

// Counts each collective in one of three ways. Only those of several members that can have met have
// a skew.
void CommunicatorRows::Add(Collective&& collective) {
  if (collective.communicator >= rows_.size()) rows_.resize(collective.communicator + 1);
  CommunicatorRow& row = rows_[collective.communicator];
  // Before the other cases: an incomplete one may also be disjoint.
  if (collective.absent_count > 0) ++row.incomplete;
  if (collective.members.size() < 2) {
    ++row.single;
    return;
  }
  if (collective.is_disjoint()) {
    ++row.disjoint;
    return;
  }
  ++row.collectives;
  row.arrival_skew.Add(collective.arrival_skew_ns());
  const auto bound_ns = collective.skew_bound_ns();
  if (!bound_ns) ++row.skew_unbounded;
  if (bound_ns && collective.arrival_skew_ns() > *bound_ns) ++row.skew_known;
  row.skew_bound_max_ns = std::max(row.skew_bound_max_ns, bound_ns.value_or(0));
  uint64_t end_ns = collective.last_arrival_ns();
  bool is_open = false;
  for (const CollectiveMember& member : collective.members) {
    end_ns = std::max(end_ns, member.end_ns);
    is_open |= member.is_open;
  }
  // From the last arrival: before it the collective could not proceed, and that wait is the skew's.
  if (!is_open) row.durations.Add(end_ns - collective.last_arrival_ns());
  KeepLargest(std::move(collective), worst_max_, IsMoreSkewed, worst_);
}

// Communicators without a collective get an empty row.
void CommunicatorRows::Finish(std::span<const Communicator> communicators,
                              CaptureSummary& summary) {
  rows_.resize(communicators.size());
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].communicator = communicators[i];
  summary.communicators = std::move(rows_);
  std::sort(worst_.begin(), worst_.end(), IsMoreSkewed);
  summary.worst_collectives = std::move(worst_);
}

// The first sample is a peak, even if it is 0.
void MemoryRows::Add(const HbmSample& sample) {
  if (sample.hbm >= rows_.size()) rows_.resize(sample.hbm + 1);
  MemoryRow& row = rows_[sample.hbm];
  ++row.samples;
  row.last_total_bytes = sample.total_bytes;
  if (sample.total_bytes > row.peak_total_bytes || row.samples == 1) {
    row.peak_total_bytes = sample.total_bytes;
    row.peak_ns = sample.time_ns;
  }
  for (size_t i = 0; i < kHbmCategories; ++i) {
    row.peak_category_bytes[i] = std::max(row.peak_category_bytes[i], sample.category_bytes[i]);
  }
}

// A memory whose events report nothing has no row.
std::vector<MemoryRow> MemoryRows::Finish(std::span<const HbmIdentity> memories) {
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i].memory = memories[i];
  std::erase_if(rows_, [](const MemoryRow& row) { return row.samples == 0; });
  std::sort(rows_.begin(), rows_.end(),
            [](const MemoryRow& a, const MemoryRow& b) { return a.memory < b.memory; });
  return std::move(rows_);
}

// Bins of 0 bytes, which end a line, change nothing.
void BandwidthRows::Add(const BandwidthSample& sample, uint64_t bin_ns) {
  BandwidthRow& row = rows_[{sample.stream, sample.direction}];
  row.stream = sample.stream;
  row.direction = sample.direction;
  row.bytes += sample.bytes;
  // The highest bin rather than the shortest transfer, whose rate would be a matter of rounding.
  const double rate = sample.BytesPerSecond(bin_ns);
  if (rate <= row.peak_bytes_per_second) return;
  row.peak_bytes_per_second = rate;
  row.peak_ns = sample.start_ns;
}

std::vector<BandwidthRow> BandwidthRows::Finish() {
  std::vector<BandwidthRow> rows;
  for (const auto& [key, row] : rows_) rows.push_back(row);
  return rows;
}

}  // namespace neurontrace
