// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_book.h"

#include <set>
#include <utility>

#include "aggregator/align/instance_clock.h"
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
  return Fit({hosts.begin(), hosts.end()}, window);
}

absl::StatusOr<CaptureClocks> ClockBook::Now(uint64_t now_realtime_ns) const {
  ASSIGN_OR_RETURN(const std::vector<HostBoot> hosts, store_.clocks().Hosts());
  return Fit(hosts, {.begin_ns = Before(now_realtime_ns, kNowNs)});
}

absl::StatusOr<CaptureClocks> ClockBook::Fit(const std::vector<HostBoot>& hosts,
                                             const RealtimeWindow& window) const {
  CaptureClocks clocks;
  for (const HostBoot& host : hosts) {  // in order
    ASSIGN_OR_RETURN(const ClockEvidence evidence, store_.clocks().Read(host, window));
    if (evidence.exchanges.empty()) continue;
    InstanceClock clock = FitInstanceClock(host.instance_id, host.boot_id, evidence);
    WorkerIdentity machine;
    machine.instance_id = host.instance_id;
    machine.boot_id = host.boot_id;
    clocks.maps.Set(machine, ClockDomain::kHostRealtime, clock.realtime);
    clocks.instances.push_back(std::move(clock));
  }
  return clocks;
}

}  // namespace neurontrace
