// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_book.h"

#include <set>
#include <utility>

#include "aggregator/align/instance_clock.h"
#include "aggregator/clocks/device_clocks.h"
#include "aggregator/clocks/reference_reading.h"
#include "aggregator/store/reference_keeper.h"
#include "base/status.h"

namespace neurontrace {
namespace {

uint64_t Before(uint64_t ns, uint64_t by_ns) { return ns > by_ns ? ns - by_ns : 0; }

}  // namespace

absl::StatusOr<CaptureClocks> ClockBook::OfCapture(const CaptureRecord& record) const {
  ASSIGN_OR_RETURN(const std::vector<StreamRecord> streams,
                   store_.OpenCapture(record.id).Streams());
  std::set<HostBoot> hosts;
  for (const StreamRecord& stream : streams) {
    const WorkerIdentity& worker = stream.identity.worker;
    hosts.insert({worker.instance_id, worker.boot_id});
  }
  RealtimeWindow window{.begin_ns = Before(record.started_realtime_ns, kMarginNs)};
  if (record.ended_realtime_ns != 0) window.end_ns = record.ended_realtime_ns + kMarginNs;
  // The reference began as REALTIME, and a capture is short.
  const uint64_t end_ns =
      record.ended_realtime_ns != 0 ? record.ended_realtime_ns : record.started_realtime_ns;
  ASSIGN_OR_RETURN(CaptureClocks clocks, Fit({hosts.begin(), hosts.end()}, window,
                                             ReferenceWindow{record.started_realtime_ns, end_ns}));
  RETURN_IF_ERROR(AddDeviceClocks(store_.OpenCapture(record.id), streams, clocks));
  return clocks;
}

absl::StatusOr<CaptureClocks> ClockBook::Now(uint64_t now_realtime_ns) const {
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, store_.clocks().Hosts());
  return Fit(hosts, {.begin_ns = Before(now_realtime_ns, kNowNs)}, std::nullopt);
}

absl::StatusOr<CaptureClocks> ClockBook::Fit(const std::vector<HostBoot>& hosts,
                                             const RealtimeWindow& evidence_of,
                                             const std::optional<ReferenceWindow>& window) const {
  CaptureClocks clocks;
  if (window) clocks.window = *window;
  ASSIGN_OR_RETURN(const ReferenceUtc reference_utc,
                   ReadReferenceUtc(store_.clocks(), evidence_of));
  for (const HostBoot& host : hosts) {  // in order
    if (IsReferenceKeeper(host)) continue;
    ASSIGN_OR_RETURN(const ClockEvidence evidence, store_.clocks().Read(host, evidence_of));
    if (evidence.exchanges.empty()) continue;
    InstanceClock clock =
        FitInstanceClock(host.instance_id, host.boot_id, evidence, window, reference_utc);
    WorkerIdentity machine;
    machine.instance_id = host.instance_id;
    machine.boot_id = host.boot_id;
    clocks.maps.Set(machine, ClockDomain::kHostRealtime, clock.realtime);
    clocks.instances.push_back(std::move(clock));
  }
  return clocks;
}

}  // namespace neurontrace
