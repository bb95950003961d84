// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/clock_reading.h"
#include "aggregator/align/host_fit.h"
#include "tests/clock_sim/host_method.h"
#include "tests/clock_sim/processor_time.h"

namespace neurontrace {

HostMapping MapByProduct(const HostRecords& records, bool /*realtime_stamps*/,
                         std::span<const Stamp> stamps) {
  HostMapping mapping;
  const uint64_t begin_ns = ProcessorTimeNs();
  mapping.model = FitHostClock(records.evidence, HostFitParameters{});
  mapping.fit_ns = ProcessorTimeNs() - begin_ns;
  for (const Stamp& stamp : stamps) {
    const ClockEstimate estimate = EvaluateClock(mapping.model, stamp.raw_ns).estimate;
    mapping.mapped.push_back({.reference_ns = estimate.y_ns,
                              .bound_ns = static_cast<double>(estimate.bound_ns),
                              .likely_bound_ns = static_cast<double>(estimate.likely_bound_ns)});
  }
  return mapping;
}

}  // namespace neurontrace
