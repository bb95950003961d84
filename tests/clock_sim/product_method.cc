// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/device/device_fit.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/align/utc/realtime_map.h"
#include "tests/clock_sim/device_method.h"
#include "tests/clock_sim/host_method.h"
#include "tests/clock_sim/processor_time.h"

namespace neurontrace {

namespace {

// Of an execution's place in the ring: its events, then its sync point.
constexpr uint64_t kPlaces = 8;

Mapped MappedTo(const ClockEstimate& estimate) {
  return {.reference_ns = estimate.y_ns,
          .bound_ns = static_cast<double>(estimate.bound_ns),
          .likely_bound_ns = static_cast<double>(estimate.likely_bound_ns)};
}

// A map has no likely bounds.
std::vector<Mapped> MapRealtime(const ClockEvidence& evidence, const ClockModel& model,
                                std::span<const Stamp> stamps) {
  const ClockMap map = RealtimeMapOf(model, evidence.snapshots, evidence.events);
  std::vector<Mapped> mapped;
  for (const Stamp& stamp : stamps) {
    mapped.push_back({.reference_ns = map.ToReference(stamp.realtime_ns)});
    if (const std::optional<uint64_t> bound = map.ErrorBoundNs(stamp.realtime_ns)) {
      mapped.back().bound_ns = static_cast<double>(*bound);
      mapped.back().likely_bound_ns = mapped.back().bound_ns;
    }
  }
  return mapped;
}

DeviceEvidence EvidenceOf(const DeviceRecords& records) {
  DeviceEvidence evidence;
  for (size_t i = 0; i < records.executions.size(); ++i) {
    const DeviceRecords::Execution& execution = records.executions[i];
    evidence.executions.push_back({.exec_id = execution.exec_id,
                                   .first_sequence = kPlaces * i,
                                   .last_sequence = kPlaces * i + kPlaces - 3,
                                   .host_before_ns = execution.submit_ns,
                                   .device_start_ns = execution.start_ns,
                                   .device_end_ns = execution.end_ns,
                                   .host_after_ns = execution.complete_ns});
    if (!execution.sync) continue;
    evidence.sync_points.push_back({.exec_id = execution.sync->exec_id,
                                    .sequence = kPlaces * i + kPlaces - 2,
                                    .device_ns = execution.sync->device_ns,
                                    .host_ns = execution.sync->host_ns});
  }
  return evidence;
}

}  // namespace

HostMapping MapByProduct(const HostRecords& records, bool realtime_stamps,
                         std::span<const Stamp> stamps) {
  HostMapping mapping;
  const uint64_t begin_ns = ProcessorTimeNs();
  mapping.model =
      FitHostClock(records.evidence, HostFitParameters{}, ReferenceUtcOf({&records.keeper, 1}));
  mapping.fit_ns = ProcessorTimeNs() - begin_ns;
  if (realtime_stamps) {
    mapping.mapped = MapRealtime(records.evidence, mapping.model, stamps);
    return mapping;
  }
  for (const Stamp& stamp : stamps) {
    mapping.mapped.push_back(MappedTo(EvaluateClock(mapping.model, stamp.raw_ns).estimate));
  }
  return mapping;
}

DeviceMapping MapDeviceByProduct(const DeviceRecords& records,
                                 std::span<const DeviceStamp> stamps) {
  DeviceMapping mapping;
  const DeviceEvidence evidence = EvidenceOf(records);
  const uint64_t begin_ns = ProcessorTimeNs();
  const DeviceClockModel model = FitDeviceClock(evidence, DeviceFitParameters{});
  mapping.fit_ns = ProcessorTimeNs() - begin_ns;
  for (const DeviceStamp& stamp : stamps) {
    const ClockReading reading =
        ReadDeviceClock(model, {.x_ns = stamp.device_ns,
                                .sequence = kPlaces * stamp.execution,
                                .exec_id = records.executions[stamp.execution].exec_id});
    mapping.mapped.push_back(MappedTo(reading.estimate));
  }
  mapping.model = model.clock;
  return mapping;
}

}  // namespace neurontrace
