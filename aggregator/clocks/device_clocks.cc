// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/device_clocks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "aggregator/align/device_evidence_reader.h"
#include "aggregator/align/device_fit.h"
#include "aggregator/align/device_map.h"
#include "aggregator/clocks/core_chunks.h"
#include "base/status.h"

namespace neurontrace {
namespace {

using LogicalCore = std::pair<WorkerIdentity, uint32_t>;  // and its nc_idx

// Of one logical core: all that its chunks tell.
class CoreEvidence {
 public:
  void Add(const DecodedChunk& chunk) {
    const std::vector<DeviceEvent> events = DeviceEventsOf(chunk);
    if (events.empty()) return;
    // The numbers of a ring ascend. It can begin anew when the process closes the runtime and
    // opens it again: then nothing tells on which side of that an event is.
    began_anew_ = began_anew_ || events.back().sequence < last_sequence_;
    last_sequence_ = std::max(last_sequence_, events.back().sequence);
    reader_.Add(events);
  }
  std::vector<DeviceCoreEvidence> Finish() { return reader_.Finish().cores; }
  bool began_anew() const { return began_anew_; }

 private:
  DeviceEvidenceReader reader_;
  uint64_t last_sequence_ = 0;
  bool began_anew_ = false;
};

DeviceClock FitCore(const LogicalCore& core, const DeviceCoreEvidence& found, bool began_anew) {
  DeviceClock clock;
  clock.worker = core.first;
  clock.core = {core.second, found.device_core_idx};
  clock.executions = found.evidence.executions.size();
  clock.sync_points = found.evidence.sync_points.size();
  if (began_anew) {
    clock.findings.push_back({.kind = ClockFindingKind::kInconsistent,
                              .words = "the ring of its core began anew during the capture: its "
                                       "events keep the runtime's own times"});
    return clock;
  }
  DeviceClockModel model = FitDeviceClock(found.evidence, {});
  clock.map = DeviceMapOf(model);
  clock.findings = std::move(model.clock.findings);
  for (const ClockSegment& segment : model.clock.segments) {
    for (const ClockKnot& knot : segment.knots) {
      clock.bound_ns = std::max(clock.bound_ns, knot.bound_ns);
      clock.likely_bound_ns = std::max(clock.likely_bound_ns, knot.likely_bound_ns);
    }
  }
  return clock;
}

}  // namespace

absl::Status AddDeviceClocks(const CaptureReader& reader, const std::vector<StreamRecord>& streams,
                             CaptureClocks& clocks) {
  // A core has two streams where another agent took over from the first.
  std::map<LogicalCore, std::vector<uint32_t>> cores;
  for (const StreamRecord& stream : streams) {
    if (!stream.identity.has_core() || stream.events == 0) continue;
    cores[{stream.identity.worker, stream.identity.nc_idx}].push_back(stream.number);
  }
  CoreChunks chunks(reader);
  for (const auto& [core, numbers] : cores) {
    CoreEvidence evidence;
    for (const uint32_t number : numbers) {
      RETURN_IF_ERROR(
          chunks.ForEach(number, [&](const DecodedChunk& chunk) { evidence.Add(chunk); }));
    }
    for (const DeviceCoreEvidence& found : evidence.Finish()) {
      DeviceClock clock = FitCore(core, found, evidence.began_anew());
      clocks.maps.SetDevice(clock.worker, clock.core, clock.map);
      clocks.devices.push_back(std::move(clock));
    }
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
