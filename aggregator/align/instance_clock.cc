// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/instance_clock.h"

#include <algorithm>

#include "aggregator/align/host_fit.h"
#include "aggregator/align/realtime_map.h"

namespace neurontrace {
namespace {

std::string_view NameOf(ProbePath path) {
  switch (path) {
    case ProbePath::kUdp:
      return "udp";
    case ProbePath::kGrpc:
      return "grpc";
    case ProbePath::kPeer:
      return "peers";
    case ProbePath::kUnspecified:
      break;
  }
  return "probes";
}

std::string_view NameOf(UtcSource source) {
  switch (source) {
    case UtcSource::kPhc:
      return "phc";
    case UtcSource::kClockBound:
      return "clockbound";
    case UtcSource::kChrony:
      return "chrony";
    case UtcSource::kUnspecified:
      break;
  }
  return "utc";
}

void AddSource(std::vector<std::string>& sources, std::string_view name) {
  if (std::find(sources.begin(), sources.end(), name) == sources.end()) sources.emplace_back(name);
}

// The largest bounds between the first and the last exchange: what lies outside was extrapolated.
void FindWorst(const ClockModel& model, InstanceClock& clock) {
  for (const ClockSegment& segment : model.segments) {
    for (const ClockKnot& knot : segment.knots) {
      clock.bound_ns = std::max(clock.bound_ns, knot.bound_ns);
      clock.likely_bound_ns = std::max(clock.likely_bound_ns, knot.likely_bound_ns);
    }
  }
}

}  // namespace

InstanceClock FitInstanceClock(const std::string& instance_id, const std::string& boot_id,
                               const ClockEvidence& evidence) {
  InstanceClock clock;
  clock.instance_id = instance_id;
  clock.boot_id = boot_id;
  clock.exchanges = evidence.exchanges.size();
  for (const ClockExchange& exchange : evidence.exchanges) {
    AddSource(clock.sources, NameOf(exchange.path));
  }
  for (const UtcReading& reading : evidence.utc) AddSource(clock.sources, NameOf(reading.source));
  clock.model = FitHostClock(evidence, {});
  if (clock.model.segments.empty() || evidence.snapshots.empty()) {
    clock.model.segments.clear();
    return clock;
  }
  clock.realtime = RealtimeMapOf(clock.model, evidence.snapshots, evidence.events);
  FindWorst(clock.model, clock);
  // The last snapshot, and one second before it.
  constexpr uint64_t kSecondNs = 1'000'000'000;
  const uint64_t now_ns = evidence.snapshots.back().realtime_ns;
  const auto offset_ns = [&](uint64_t realtime_ns) {
    return static_cast<int64_t>(clock.realtime.ToReference(realtime_ns) - realtime_ns);
  };
  clock.offset_ns = offset_ns(now_ns);
  clock.drift_ppb = now_ns < kSecondNs ? 0 : clock.offset_ns - offset_ns(now_ns - kSecondNs);
  return clock;
}

}  // namespace neurontrace
