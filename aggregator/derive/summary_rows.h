// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "aggregator/derive/summary.h"

// The sums of CaptureSummaryBuilder, one small class for each table, which nothing else uses. One
// thread at a time. Each is filled by Add and read by one call of Finish.
namespace neurontrace {

// Sums executions by core and source, and keeps the slowest ones.
class ExecutionRows {
 public:
  explicit ExecutionRows(size_t slowest_max) : slowest_max_(slowest_max) {}
  // Takes the execution over if it is one of the slowest so far. Open executions are only counted.
  void Add(Execution&& execution);
  // Sets `executions` and `slowest`.
  void Finish(CaptureSummary& summary);

 private:
  const size_t slowest_max_;
  std::map<std::pair<uint32_t, ExecutionSource>, ExecutionRow> rows_;
  // A min-heap by length, so that the shortest of them can be replaced.
  std::vector<Execution> slowest_;
};

// Sums steps by stream and source.
class StepRows {
 public:
  // Steps of one stream must come as StepFinder returns them.
  void Add(const Step& step);
  // Returns the rows by stream and source.
  std::vector<StepRow> Finish();

 private:
  // A row, and what its next interval needs.
  struct Sum {
    StepRow row;
    uint64_t latest_start_ns = 0;
  };
  std::map<std::pair<uint32_t, StepSource>, Sum> rows_;
};

// Sums collectives by communicator, and keeps those with the largest skew.
class CommunicatorRows {
 public:
  // `worst_max` limits the examples.
  explicit CommunicatorRows(size_t worst_max) : worst_max_(worst_max) {}
  // Takes the collective over if its skew is one of the largest so far.
  void Add(Collective&& collective);
  // Sets `communicators` and `worst_collectives`. `communicators` are those of the
  // CollectiveFinder, in its numbering.
  void Finish(std::span<const Communicator> communicators, CaptureSummary& summary);

 private:
  const size_t worst_max_;
  std::vector<CommunicatorRow> rows_;  // by communicator
  // A min-heap by skew.
  std::vector<Collective> worst_;
};

// Keeps the peaks of each device memory. Peaks of categories are found one by one and need not be
// of one time.
class MemoryRows {
 public:
  // Samples of one memory must come in the order of time.
  void Add(const HbmSample& sample);
  // `memories` are those of HbmUse, which the samples refer to.
  std::vector<MemoryRow> Finish(std::span<const HbmIdentity> memories);

 private:
  std::vector<MemoryRow> rows_;  // by memory
};

// Sums transfers by core and direction, and keeps their peak rate.
class BandwidthRows {
 public:
  // `bin_ns` is the length of the bins that the samples are of.
  void Add(const BandwidthSample& sample, uint64_t bin_ns);
  // Returns the rows by stream and direction.
  std::vector<BandwidthRow> Finish();

 private:
  std::map<std::pair<uint32_t, TransferDirection>, BandwidthRow> rows_;
};

}  // namespace neurontrace
