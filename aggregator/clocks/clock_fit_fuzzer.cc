// SPDX-License-Identifier: Apache-2.0
// Evidence that may be stored, whatever it says: the fits end; what they make is in order, can be
// stored and read back, and is the same whatever the order in which evidence came. Maps never run
// backwards, invert, and are no surer than the models that they are made of.
//
// The first byte says whose clock: a host's, with the readings of the reference's keeper, or a
// device's. Entries follow, each a byte for its kind and numbers that are mostly near to where an
// honest clock would be.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/align/core/clock_lines.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/wide.h"
#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence_reader.h"
#include "aggregator/align/device/device_fit.h"
#include "aggregator/align/host_fit.h"
#include "aggregator/align/instance_clock.h"
#include "aggregator/align/utc/realtime_map.h"
#include "aggregator/clocks/clock_rows.h"
#include "aggregator/clocks/clock_rows_test_support.h"
#include "lib/base/fuzz_input.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

constexpr size_t kEntriesMax = 400;
constexpr size_t kPiecesMax = 100;  // that are looked at

// Mostly near to where it would be, or none.
std::optional<uint64_t> Maybe(FuzzInput& input, uint64_t near) {
  const uint8_t kind = input.Byte();
  if (kind % 8 == 7) return std::nullopt;
  return kind % 8 == 6 ? input.Number() : near + kind / 8;
}

// --- Hosts ---

// One machine's clocks as entries move them on.
struct Host {
  uint64_t raw_ns = 1'000 * kTestSecond;
  uint64_t ahead_ns = kTestStart;  // of the reference
  uint32_t epoch = 1;
  ClockEvidence evidence;
};

void AddExchange(FuzzInput& input, uint8_t kind, Host& host) {
  const uint8_t ways = input.Byte();
  ClockExchange e;
  e.send_raw_ns = host.raw_ns;
  e.reference_receive_ns = host.raw_ns + host.ahead_ns + ways * uint64_t{250};
  e.reference_send_ns = e.reference_receive_ns + (kind & 15);
  e.receive_raw_ns = host.raw_ns + 60'000 + (ways % 16) * uint64_t{1'000};
  if ((kind & 16) != 0) e.reference_receive_ns += input.Number();
  if ((kind & 32) != 0) e.reference_send_ns += input.Number();
  if ((kind & 64) != 0) e.receive_raw_ns += input.Number();
  e.reference_epoch = host.epoch;
  e.path = (kind & 128) != 0 ? ProbePath::kGrpc : ProbePath::kUdp;
  host.evidence.exchanges.push_back(e);
}

// One entry, or several alike.
void AddEntries(FuzzInput& input, Host& host) {
  const uint8_t what = input.Byte();
  const uint8_t kind = input.Byte();
  switch (what % 8) {
    case 0:
    case 1:
      AddExchange(input, kind, host);
      break;
    case 2:
      for (int i = 0; i < kind % 32; ++i) {
        AddExchange(input, 0, host);
        host.raw_ns += kTestSecond / 2;
      }
      break;
    case 3:
      host.raw_ns += input.Number();
      break;
    case 4:
      host.ahead_ns += input.Number();
      host.epoch += kind % 2;
      break;
    case 5: {
      ClockSnapshot s;
      s.raw_begin_ns = host.raw_ns;
      s.raw_end_ns = host.raw_ns + kind;
      s.realtime_ns = host.raw_ns + kTestStart + input.Number();
      s.monotonic_ns = s.boottime_ns = host.raw_ns;
      host.evidence.snapshots.push_back(s);
      break;
    }
    case 6:
      host.evidence.events.push_back({static_cast<ClockEventKind>(1 + kind % 5), host.raw_ns,
                                      host.raw_ns + input.Number(),
                                      static_cast<int64_t>(input.Number())});
      break;
    case 7: {
      const uint64_t earliest = host.raw_ns + kTestStart + input.Number();
      host.evidence.utc.push_back(
          {static_cast<UtcSource>(1 + kind % 3), host.raw_ns, earliest, earliest + input.Number()});
      break;
    }
  }
  host.raw_ns += uint64_t{what / 8u} << 24;
}

// As a store reads it.
ClockEvidence InOrder(ClockEvidence evidence) {
  std::ranges::stable_sort(evidence.snapshots, {}, &ClockSnapshot::raw_begin_ns);
  std::ranges::stable_sort(evidence.exchanges, {}, &ClockExchange::send_raw_ns);
  std::ranges::stable_sort(evidence.events, {}, &ClockEvent::raw_begin_ns);
  std::ranges::stable_sort(evidence.utc, {}, &UtcReading::raw_ns);
  return evidence;
}

// --- What was promised ---

void CheckMap(const ClockMap& map) {
  std::vector<uint64_t> times = {0, 1, UINT64_MAX - 1, UINT64_MAX};
  for (const ClockMap::Piece& piece : map.pieces()) {
    if (times.size() > 3 * kPiecesMax) break;
    const uint64_t x = piece.raw_begin_ns;
    times.insert(times.end(), {x - 1, x, x + 1, x + kTestSecond});
  }
  std::ranges::sort(times);
  ClockMapCursor cursor(map);
  uint64_t before = 0;
  for (const uint64_t x : times) {
    const uint64_t y = map.ToReference(x);
    CheckPromise(y >= before, "a map never runs backwards");
    CheckPromise(cursor.ToReference(x) == y && cursor.ErrorBoundNs(x) == map.ErrorBoundNs(x),
                 "a cursor agrees with its map");
    const uint64_t back = map.ToRaw(y);
    CheckPromise(back <= x && map.ToReference(back) == y, "a map inverts");
    before = y;
  }
}

void CheckMapOf(const ClockModel& model) {
  const ClockMap map = MapOf(model);
  CheckMap(map);
  if (model.segments.empty()) return;
  CheckPromise(!map.is_identity() || map.pieces().size() > 1, "a model makes a map");
  for (const ClockSegment& segment : model.segments) {
    for (const ClockKnot& knot : segment.knots) {
      for (const uint64_t x : {knot.x_ns - 1, knot.x_ns, knot.x_ns + 1}) {
        const ClockEstimate estimate = EvaluateClock(model, x).estimate;
        const auto bound = map.ErrorBoundNs(x);
        const Wide off = Wide{map.ToReference(x)} - Wide{estimate.y_ns};
        CheckPromise(!bound || std::max(off, -off) + Wide{estimate.bound_ns} <= Wide{*bound} + 4,
                     "a map's bound is at least its model's");
      }
    }
  }
}

void CheckStorable(const CaptureClocks& clocks) {
  const auto rows = EncodeClockRows(clocks);
  const auto again = DecodeClockRows(rows);
  if (!again.ok()) fprintf(stderr, "%s\n", std::string(again.status().message()).c_str());
  CheckPromise(again.ok() && EncodeClockRows(*again) == rows, "a fitted model can be stored");
}

// --- Both ---

void FuzzHost(FuzzInput& input) {
  Host host;
  Host keeper;
  while (!input.empty() && CountClockEvidence(host.evidence) < kEntriesMax &&
         CountClockEvidence(keeper.evidence) < kEntriesMax) {
    AddEntries(input, input.Byte() % 8 == 7 ? keeper : host);
  }
  if (!CheckClockEvidence(host.evidence).ok() || !CheckClockEvidence(keeper.evidence).ok()) return;
  const ClockEvidence evidence = InOrder(host.evidence);
  const ClockEvidence own[] = {InOrder(keeper.evidence)};
  const ReferenceUtc utc = ReferenceUtcOf(own);
  const InstanceClock clock = FitInstanceClock("i", "b", evidence, std::nullopt, utc);
  ReadEverywhere(clock);
  CheckMap(clock.realtime);
  CheckMapOf(clock.model);
  CaptureClocks clocks;
  clocks.instances.push_back(clock);
  CheckStorable(clocks);
  for (const RealtimeInterval& stretch :
       RealtimeIntervalsOf(clock.model, evidence.snapshots, evidence.events)) {
    CheckMap(MapAlong(stretch.lines));
  }
  ClockEvidence other_way = evidence;
  std::ranges::reverse(other_way.exchanges);
  CheckPromise(FitHostClock(other_way, {}, utc) == FitHostClock(evidence, {}, utc),
               "the order of exchanges does not matter");
}

void FuzzDevice(FuzzInput& input) {
  DeviceEvidenceReader reader;
  std::vector<DeviceEvent> events;
  uint64_t sequence = 0;
  uint64_t exec_id = 1;
  uint64_t counter = kTestSecond;
  uint64_t host = kTestStart;
  while (!input.empty() && events.size() < 4 * kEntriesMax) {
    const uint8_t what = input.Byte();
    DeviceEvent event;
    event.type = static_cast<DeviceEventType>(what % 10);
    event.phase = static_cast<Phase>(what / 10 % 4);
    const uint8_t on = input.Byte();
    sequence += on % 4;
    exec_id += on / 4 % 2;
    counter += uint64_t{on} << 12;
    host += uint64_t{on} << 12;
    if (on >= 0xf0) counter = input.Number();
    if ((on & 0xf8) == 0xe8) host += input.Number();
    if ((on & 0xf8) == 0xe0) sequence = input.Number();
    event.sequence = sequence;
    event.tracking_id = what / 40 % 3 + exec_id;
    event.timestamp_ns = host;
    event.exec_id = Maybe(input, exec_id);
    event.nc_timestamp_ns = Maybe(input, counter);
    event.cpu_timestamp_ns = Maybe(input, host);
    if (what >= 200) event.device_core_idx = what % 3;
    events.push_back(event);
  }
  reader.Add(events);
  WorkerIdentity worker;
  worker.instance_id = "i";
  CaptureClocks clocks;
  for (const DeviceCoreEvidence& core : reader.Finish().cores) {
    const DeviceClockModel model = FitDeviceClock(core.evidence, {});
    CheckPromise(model == FitDeviceClock(core.evidence, {}),
                 "the same evidence gives the same model");
    CheckPromise(model.ranges.size() == model.clock.segments.size(), "a range for each segment");
    for (const DeviceEvent& event : events) {
      ReadDeviceClock(model, {event.nc_timestamp_ns.value_or(0), event.sequence, event.exec_id});
    }
    DeviceClock clock;
    clock.worker = worker;
    clock.core = {0, core.device_core_idx};
    clock.map = DeviceMapOf(model);
    for (const DeviceMapPart& part : clock.map.parts) CheckMap(part.map);
    clocks.devices.push_back(std::move(clock));
  }
  CheckStorable(clocks);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::FuzzInput input(data, size);
  if (input.Byte() % 2 == 0) {
    neurontrace::FuzzHost(input);
  } else {
    neurontrace::FuzzDevice(input);
  }
  return 0;
}
