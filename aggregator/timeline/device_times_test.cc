// SPDX-License-Identifier: Apache-2.0
// Goal: what devices stamped is shown when the device's clock says it was, in order, and as the
// runtime put it where that clock says nothing; and bounds are those of the clocks a time came
// through. Method: captures in memory, device maps made by hand.
#include "aggregator/align/device/device_times.h"
#include "aggregator/align/core/clock_maps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {
namespace {

using ::testing::Eq;

constexpr uint64_t kHostBase = 1'750'000'000'000'000'000u;
constexpr uint64_t kDeviceBase = 5'000'000'000;
// The reference is so far ahead of the host.
constexpr uint64_t kHostOffset = 1'000'000;
constexpr uint64_t kHostBound = 700;
constexpr uint64_t kDeviceBound = 90;

StreamIdentity Core(const std::string& instance, uint32_t nc_idx) {
  return {.agent_id = "agent-" + instance,
          .worker = {instance, "boot", 1, 1, ""},
          .kind = StreamKind::kNeuronCore,
          .nc_idx = nc_idx};
}

struct SeenRecord {
  std::string type;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t raw_ns = 0;
  int clock = 0;  // kDeviceClock or kVendorClock
  std::optional<uint64_t> bound_ns;
  RecordKind kind = RecordKind::kSpan;
};

class DeviceTimesTest : public ::testing::Test {
 protected:
  uint32_t AddStream(const std::string& instance, uint32_t nc_idx) {
    const StreamIdentity identity = Core(instance, nc_idx);
    clocks_.Set(identity.worker, ClockDomain::kHostRealtime,
                *ClockMap::FromPieces({{kHostBase, kHostBase + kHostOffset, 0, kHostBound}}));
    return source_.AddStream(identity);
  }
  // Device time kDeviceBase is host time kHostBase, and the device runs 20 ppm slow.
  void AddDevice(const std::string& instance, const DeviceCore& core, uint64_t known_from_ns = 0) {
    std::vector<ClockMap::Piece> pieces;
    if (known_from_ns > 0) pieces.push_back({0, 0, 0, std::nullopt});
    pieces.push_back({kDeviceBase + known_from_ns, kHostBase + known_from_ns, kRate, kDeviceBound});
    clocks_.SetDevice(Core(instance, 0).worker, core,
                      {{{0, 0, 0, 0, *ClockMap::FromPieces(pieces)}}});
  }
  static uint64_t Host(uint64_t device_ns) {
    const uint64_t elapsed = device_ns - kDeviceBase;
    return kHostBase + elapsed + ((elapsed * static_cast<uint64_t>(kRate)) >> ClockMap::kRateBits);
  }
  void Close(uint32_t stream) { source_.AddChunk(stream, builder_); }

  std::vector<SeenRecord> Read(TimelineOptions options = {}) {
    options.clocks = &clocks_;
    auto reader = TimelineReader::Open(source_, std::move(options));
    EXPECT_TRUE(reader.ok()) << reader.status();
    RecordBounds bounds((*reader)->streams());
    std::vector<SeenRecord> seen;
    TimelineBatch batch;
    for (uint64_t before_ns = 0; *(*reader)->Next(batch);) {
      for (const TimelineRecord* record : batch.records) {
        EXPECT_GE(record->start_ns, before_ns);
        EXPECT_LT(record->start_ns, batch.end_ns);
        before_ns = record->start_ns;
        seen.push_back({std::string(record->start().event_type), record->start_ns, record->end_ns,
                        record->raw_start_ns(), record->flags & (kDeviceClock | kVendorClock),
                        bounds.Of(*record), record->kind});
      }
    }
    EXPECT_EQ((*reader)->counts().moved, 0u);
    return seen;
  }

  static constexpr int64_t kRate = 20 * 1'099'512;  // 20 ppm
  FakeChunkSource source_;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  ClockMaps clocks_;
};

TEST_F(DeviceTimesTest, OrderIsThatOfTheDevicesClockWhateverTheRuntimeMadeOfIt) {
  std::mt19937_64 random(7);
  std::map<uint64_t, size_t> expected;  // by reference time
  for (uint32_t core = 0; core < 3; ++core) {
    const uint32_t stream = AddStream("i-a", core);
    AddDevice("i-a", {core});
    std::map<uint64_t, uint64_t> events;  // device time by the runtime's
    for (uint64_t i = 0; i < 3'000; ++i) {
      const uint64_t device_ns = kDeviceBase + 10'000'000 + i * 20'000 + random() % 20'000;
      const uint64_t host_ns = Host(device_ns);
      events[host_ns - 3'000'000 + random() % 6'000'000] = device_ns;
    }
    size_t written = 0;
    for (const auto& [runtime_ns, device_ns] : events) {
      script_.Instant("hw_notify", runtime_ns, 0, 7, {{"nc_timestamp_ns", device_ns}});
      ++expected[Host(device_ns) + kHostOffset];
      if (++written % 500 == 0) Close(stream);
    }
    if (written % 500 != 0) Close(stream);
  }
  for (const size_t window_bytes : {size_t{1} << 20, size_t{1}}) {
    TimelineOptions options;
    options.window_bytes_max = window_bytes;
    options.batch_records_target = 64;
    std::map<uint64_t, size_t> seen;
    for (const SeenRecord& record : Read(std::move(options))) {
      EXPECT_EQ(record.clock, kDeviceClock);
      EXPECT_THAT(record.bound_ns, Eq(kDeviceBound + kHostBound));
      ++seen[record.start_ns];
    }
    EXPECT_EQ(seen, expected);
  }
}

TEST_F(DeviceTimesTest, AWindowShowsWhatTheDevicesClockPutsIntoIt) {
  const uint32_t stream = AddStream("i-a", 0);
  AddDevice("i-a", {0});
  for (uint64_t i = 0; i < 10; ++i) {  // the runtime puts them 2 ms late
    const uint64_t device_ns = kDeviceBase + i * 1'000'000;
    script_.Instant("hw_notify", Host(device_ns) + 2'000'000, 0, 7,
                    {{"nc_timestamp_ns", device_ns}});
    Close(stream);
  }
  TimelineOptions options;
  options.filter.window_start_ns = Host(kDeviceBase + 3'000'000) + kHostOffset;
  options.filter.window_end_ns = Host(kDeviceBase + 6'000'000) + kHostOffset;
  const auto seen = Read(std::move(options));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].start_ns, Host(kDeviceBase + 3'000'000) + kHostOffset);
}

TEST_F(DeviceTimesTest, SpansBeginAndEndByTheClockOfTheirCore) {
  const uint32_t stream = AddStream("i-a", 0);
  AddDevice("i-a", {0, 4});
  const uint64_t late_ns = 40'000;  // the synchronisation point of both was read late
  const auto at = [&](uint64_t device_ns) { return Host(kDeviceBase) + device_ns + late_ns; };
  const auto start = [&](uint64_t device_ns, uint64_t id) {
    script_.Start("nc_exec_running", at(device_ns), id, 7,
                  {{"device_core_idx", uint64_t{4}}, {"nc_timestamp_ns", kDeviceBase + device_ns}});
  };
  const auto stop = [&](uint64_t device_ns, uint64_t id) {
    script_.Stop("nc_exec_running", at(device_ns), id, 7,
                 {{"nc_timestamp_ns", kDeviceBase + device_ns}});
  };
  start(1'000, 1);
  stop(900'000, 1);
  start(1'000'000, 2);
  Close(stream);
  stop(90'000'000, 2);  // in a later chunk
  Close(stream);
  const auto seen = Read();
  const auto reference = [](uint64_t device_ns) {
    return Host(kDeviceBase + device_ns) + kHostOffset;
  };
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].start_ns, reference(1'000));
  EXPECT_EQ(seen[0].end_ns, reference(900'000));
  EXPECT_EQ(seen[0].raw_ns, at(1'000));
  EXPECT_EQ(seen[1].start_ns, reference(1'000'000));
  EXPECT_EQ(seen[1].end_ns, reference(90'000'000));
  EXPECT_EQ(seen[1].clock, kDeviceClock);
  // The stop's attributes come at the span's end, though the runtime put it elsewhere.
  EXPECT_EQ(seen[2].kind, RecordKind::kStopAttributes);
  EXPECT_EQ(seen[2].start_ns, seen[1].end_ns);
}

TEST_F(DeviceTimesTest, KeepsRuntimeTimeOutsideClockRange) {
  const uint32_t stream = AddStream("i-a", 0);
  AddDevice("i-a", {0, 4}, 1'000'000);
  const auto add = [&](const std::string& type, uint64_t core, uint64_t device_ns, uint64_t raw) {
    script_.Instant(type, raw, 0, 7, {{"device_core_idx", core}, {"nc_timestamp_ns", device_ns}});
  };
  const uint64_t device_ns = kDeviceBase + 2'000'000;
  add("ambiguous", 4, kDeviceBase + 5, kHostBase + 5);
  add("no_map", 3, device_ns, kHostBase + 10);
  add("known", 4, device_ns, kHostBase + 2'000'000);
  add("timestamp_sync_point", 4, device_ns, kHostBase + 2'000'100);
  add("too_far", 4, device_ns, kHostBase + 2'000'000 + 2 * DeviceTimes::kShiftMaxNs);
  Close(stream);
  std::map<std::string, SeenRecord> seen;
  for (const SeenRecord& record : Read()) seen[record.type] = record;
  for (const char* type : {"ambiguous", "no_map", "too_far"}) {
    EXPECT_EQ(seen[type].clock, kVendorClock) << type;
    EXPECT_EQ(seen[type].start_ns, seen[type].raw_ns + kHostOffset) << type;
    EXPECT_THAT(seen[type].bound_ns, Eq(std::nullopt)) << type;
  }
  EXPECT_EQ(seen["known"].clock, kDeviceClock);
  EXPECT_EQ(seen["timestamp_sync_point"].clock, 0);
  EXPECT_THAT(seen["timestamp_sync_point"].bound_ns, Eq(kHostBound));
}

TEST_F(DeviceTimesTest, TheOrderOfTwoRecordsOfOneHostNeedsNoBoundOfItsClock) {
  for (const char* instance : {"i-a", "i-b"}) {
    const uint32_t stream = AddStream(instance, 0);
    AddDevice(instance, {0});
    script_.Instant("nrt_execute", kHostBase + 10'000, 0, 7);
    script_.Instant("hw_notify", Host(kDeviceBase + 20'000), 0, 7,
                    {{"nc_timestamp_ns", kDeviceBase + 20'000}});
    script_.Instant("nrt_execute", kHostBase + 30'000, 0, 7);
    Close(stream);
  }
  TimelineOptions options;
  options.clocks = &clocks_;
  auto reader = TimelineReader::Open(source_, std::move(options));
  ASSERT_TRUE(reader.ok());
  RecordBounds bounds((*reader)->streams());
  std::vector<std::shared_ptr<const ChunkWindow>> windows;
  std::map<uint32_t, std::vector<const TimelineRecord*>> records;  // by stream
  for (TimelineBatch batch; *(*reader)->Next(batch);) {
    windows.insert(windows.end(), batch.windows.begin(), batch.windows.end());
    for (const TimelineRecord* record : batch.records) records[record->stream].push_back(record);
  }
  ASSERT_EQ(records[0].size(), 3u);
  ASSERT_EQ(records[1].size(), 3u);
  EXPECT_THAT(bounds.ForOrder(*records[0][0], *records[0][2]), Eq(0u));
  EXPECT_THAT(bounds.ForOrder(*records[0][0], *records[0][1]), Eq(kDeviceBound));
  EXPECT_THAT(bounds.ForOrder(*records[0][0], *records[1][2]), Eq(2 * kHostBound));
  EXPECT_THAT(bounds.ForOrder(*records[0][1], *records[1][1]), Eq(2 * (kHostBound + kDeviceBound)));
}

}  // namespace
}  // namespace neurontrace
