// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/communicators.h"
#include "aggregator/derive/summary.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/timeline_filter.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

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
  void RecordPreparation(uint32_t stream, uint64_t exec_id, uint64_t start_ns,
                         std::string_view model_name);
  void Take(const TimelineBatch& batch);
  CaptureSummary Finish();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace neurontrace
