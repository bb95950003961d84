// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/event_clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence_reader.h"
#include "aggregator/align/device/device_fit.h"
#include "lib/base/status.h"
#include "lib/trace/decoded_chunk.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {
namespace {

// Reads the chunks of a stream in the order of recording, which is that of its ring, because times
// are what is being examined. Holds one chunk, and a number for each. One thread at a time.
class CoreChunks {
 public:
  explicit CoreChunks(const CaptureReader& reader) : reader_(reader) {}

  // Visits the chunks with events within a window of their host's REALTIME, ends included. Skips
  // chunks that are damaged or expire meanwhile. Fails with the error of the store.
  absl::Status ForEach(uint32_t stream, const RealtimeWindow& window,
                       const std::function<void(const DecodedChunk&)>& visit);

  uint64_t unreadable() const { return unreadable_; }  // chunks of all streams

 private:
  const CaptureReader& reader_;
  std::vector<uint64_t> sequences_;
  StoredChunk stored_;
  std::string columns_;
  DecodedChunk chunk_;
  uint64_t unreadable_ = 0;
};

absl::Status CoreChunks::ForEach(uint32_t stream, const RealtimeWindow& window,
                                 const std::function<void(const DecodedChunk&)>& visit) {
  const StreamReader chunks = reader_.Stream(stream);
  sequences_.clear();
  ChunkIndexIterator it = chunks.Index(window.begin_ns);
  for (; it.Valid(); it.Next()) {
    if (it.entry().first_timestamp_ns <= window.end_ns) sequences_.push_back(it.entry().sequence);
  }
  RETURN_IF_ERROR(it.status());
  // The index is ordered by time.
  std::sort(sequences_.begin(), sequences_.end());
  for (const uint64_t sequence : sequences_) {
    absl::Status read = chunks.ReadChunk(sequence, stored_);
    if (read.ok()) read = UncompressColumns(stored_.columns(), stored_.columns_bytes(), columns_);
    if (read.ok()) read = chunk_.Decode(columns_);
    // A chunk that is damaged or expired is counted; any other error is the store's.
    if (absl::IsDataLoss(read) || absl::IsInvalidArgument(read) || absl::IsNotFound(read)) {
      ++unreadable_;
      continue;
    }
    RETURN_IF_ERROR(read);
    visit(chunk_);
  }
  return absl::OkStatus();
}

using LogicalCore = std::pair<WorkerIdentity, uint32_t>;  // and its nc_idx

// Everything that the chunks of one logical core contribute.
class CoreEvidence {
 public:
  explicit CoreEvidence(const OrderChecker& order)
      : with_collectives_(order.is_needed()), collectives_(order.ReaderForCore()) {}

  void Add(const DecodedChunk& chunk) {
    const std::vector<DeviceEvent> events = DeviceEventsOf(chunk);
    if (events.empty()) return;
    // Numbers of a ring ascend. It restarts when the process closes the runtime and opens it again,
    // and then nothing shows to which of the two an event belongs.
    has_restarted_ = has_restarted_ || events.back().sequence < last_sequence_;
    last_sequence_ = std::max(last_sequence_, events.back().sequence);
    reader_.Add(events);
    if (with_collectives_) collectives_.Add(events);
  }
  std::vector<DeviceCoreEvidence> Finish() { return reader_.Finish().cores; }
  bool has_restarted() const { return has_restarted_; }
  CollectiveReader& collectives() { return collectives_; }

 private:
  DeviceEvidenceReader reader_;
  const bool with_collectives_;
  CollectiveReader collectives_;
  uint64_t last_sequence_ = 0;
  bool has_restarted_ = false;
};

// Determines the largest bounds between the first and last evidence of each run. Beyond, bounds are
// those of times at which nothing happened. Includes both ends of each run and every knot between
// them.
void FindWorst(const DeviceClockModel& model, DeviceClock& clock) {
  const auto add = [&clock](uint64_t bound_ns, uint64_t likely_bound_ns) {
    clock.bound_ns = std::max(clock.bound_ns, bound_ns);
    clock.likely_bound_ns = std::max(clock.likely_bound_ns, likely_bound_ns);
  };
  for (size_t i = 0; i < model.clock.segments.size(); ++i) {
    const ClockSegment& segment = model.clock.segments[i];
    const DeviceSegmentRange& range = model.ranges[i];
    for (const uint64_t end_ns : {range.x_begin_ns, range.x_end_ns}) {
      const ClockEstimate estimate = EvaluateSegment(segment, end_ns);
      add(estimate.bound_ns, estimate.likely_bound_ns);
    }
    for (const ClockKnot& knot : segment.knots) {
      if (knot.x_ns < range.x_begin_ns || knot.x_ns > range.x_end_ns) continue;
      add(knot.bound_ns, knot.likely_bound_ns);
    }
  }
}

// Fits the clock of one physical core. Without a map its events keep the runtime's timestamps.
DeviceClock FitCore(const LogicalCore& core, const DeviceCoreEvidence& found, bool has_restarted) {
  DeviceClock clock;
  clock.worker = core.first;
  clock.core = {core.second, found.device_core_idx};
  clock.executions = found.evidence.executions.size();
  clock.sync_points = found.evidence.sync_points.size();
  if (has_restarted) {
    clock.findings.push_back({.kind = ClockFindingKind::kInconsistent,
                              .words = "its core's ring restarted during the capture, so its "
                                       "events keep the runtime's own times"});
    return clock;
  }
  DeviceClockModel model = FitDeviceClock(found.evidence, {});
  clock.map = DeviceMapOf(model);
  clock.findings = std::move(model.clock.findings);
  // A counter that restarts goes back, so a finding could end before it begins.
  for (ClockFinding& finding : clock.findings) {
    finding.x_end_ns = std::max(finding.x_begin_ns, finding.x_end_ns);
  }
  FindWorst(model, clock);
  return clock;
}

// Returns the finding for chunks that could not be read.
ClockFinding UnreadChunks(uint64_t chunks) {
  return {.kind = ClockFindingKind::kInconsistent,
          .words = fmt::format(
              "{} chunks of its core are damaged, so their evidence about its clock is missing",
              chunks)};
}

}  // namespace

// One logical core after another, so that the evidence of only one is in memory.
absl::Status AddEventClocks(const CaptureReader& reader, const std::vector<StreamRecord>& streams,
                            const OrderClasses& order, CaptureClocks& clocks,
                            const RealtimeWindow& window) {
  // A core has two streams if another agent took over from the first.
  std::map<LogicalCore, std::vector<const StreamRecord*>> cores;
  for (const StreamRecord& stream : streams) {
    if (!stream.identity.has_core() || stream.events == 0) continue;
    cores[{stream.identity.worker, stream.identity.nc_idx}].push_back(&stream);
  }
  CoreChunks chunks(reader);
  // It reads the device clocks that the loop adds to `clocks`, so AddCore follows SetDevice.
  OrderChecker checker(clocks, order);
  for (const auto& [core, of_core] : cores) {
    CoreEvidence evidence(checker);
    const uint64_t unreadable_before = chunks.unreadable();
    for (const StreamRecord* stream : of_core) {
      const ClockMap& host = clocks.maps.For(core.first, ClockDomain::kHostRealtime);
      // The chunk index is in the host's REALTIME, the window in reference time.
      const RealtimeWindow raw{host.ToRaw(window.begin_ns), host.ToRaw(window.end_ns)};
      RETURN_IF_ERROR(chunks.ForEach(stream->number, raw,
                                     [&](const DecodedChunk& chunk) { evidence.Add(chunk); }));
    }
    for (const DeviceCoreEvidence& found : evidence.Finish()) {
      DeviceClock clock = FitCore(core, found, evidence.has_restarted());
      if (chunks.unreadable() > unreadable_before) {
        clock.findings.push_back(UnreadChunks(chunks.unreadable() - unreadable_before));
      }
      clocks.maps.SetDevice(clock.worker, clock.core, clock.map);
      clocks.devices.push_back(std::move(clock));
    }
    checker.AddCore(*of_core.front(), evidence.collectives());
  }
  clocks.order = checker.Finish();
  return absl::OkStatus();
}

}  // namespace neurontrace
