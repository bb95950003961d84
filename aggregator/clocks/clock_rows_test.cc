// SPDX-License-Identifier: Apache-2.0
// Clocks come back from their rows to the letter, equal evidence gives equal bytes, and what is no
// row of ours is refused: never a crash, nor a clock that cannot be read.
#include "aggregator/clocks/clock_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/instance_clock.h"
#include "aggregator/clocks/clock_rows_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

void ExpectEqual(const ClockMap& a, const ClockMap& b) {
  ASSERT_EQ(a.pieces().size(), b.pieces().size());
  EXPECT_EQ(a.is_identity(), b.is_identity());
  for (size_t i = 0; i < a.pieces().size(); ++i) {
    EXPECT_EQ(a.pieces()[i].raw_begin_ns, b.pieces()[i].raw_begin_ns);
    EXPECT_EQ(a.pieces()[i].reference_begin_ns, b.pieces()[i].reference_begin_ns);
    EXPECT_EQ(a.pieces()[i].rate, b.pieces()[i].rate);
    EXPECT_EQ(a.pieces()[i].error_bound_ns, b.pieces()[i].error_bound_ns);
  }
}

void ExpectEqual(const DeviceMap& a, const DeviceMap& b) {
  ASSERT_EQ(a.parts.size(), b.parts.size());
  for (size_t i = 0; i < a.parts.size(); ++i) {
    EXPECT_EQ(a.parts[i].first_sequence, b.parts[i].first_sequence);
    EXPECT_EQ(a.parts[i].last_sequence, b.parts[i].last_sequence);
    EXPECT_EQ(a.parts[i].first_exec_id, b.parts[i].first_exec_id);
    EXPECT_EQ(a.parts[i].last_exec_id, b.parts[i].last_exec_id);
    ExpectEqual(a.parts[i].map, b.parts[i].map);
  }
}

TEST(ClockRows, RoundTripEverything) {
  const CaptureClocks clocks = OneOfEach();
  const auto rows = EncodeClockRows(clocks);
  ASSERT_EQ(rows.size(), clocks.instances.size() + clocks.devices.size() + clocks.order.size());
  const auto again = DecodeClockRows(rows);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EncodeClockRows(*again), rows);
  EXPECT_EQ(again->order, clocks.order);
  ASSERT_EQ(again->instances.size(), clocks.instances.size());
  for (size_t i = 0; i < clocks.instances.size(); ++i) {
    const InstanceClock& a = clocks.instances[i];
    const InstanceClock& b = again->instances[i];
    EXPECT_EQ(a.instance_id, b.instance_id);
    EXPECT_EQ(a.boot_id, b.boot_id);
    EXPECT_EQ(a.model, b.model);
    ExpectEqual(a.realtime, b.realtime);
    EXPECT_EQ(a.offset_ns, b.offset_ns);
    EXPECT_EQ(a.drift_ppb, b.drift_ppb);
    EXPECT_EQ(a.bound_ns, b.bound_ns);
    EXPECT_EQ(a.likely_bound_ns, b.likely_bound_ns);
    EXPECT_EQ(a.exchanges, b.exchanges);
    EXPECT_EQ(a.sources, b.sources);
    WorkerIdentity machine;
    machine.instance_id = a.instance_id;
    machine.boot_id = a.boot_id;
    ExpectEqual(a.realtime, again->maps.For(machine, ClockDomain::kHostRealtime));
  }
  ASSERT_EQ(again->devices.size(), clocks.devices.size());
  for (size_t i = 0; i < clocks.devices.size(); ++i) {
    const DeviceClock& a = clocks.devices[i];
    const DeviceClock& b = again->devices[i];
    EXPECT_EQ(a.worker, b.worker);
    EXPECT_EQ(a.core, b.core);
    ExpectEqual(a.map, b.map);
    EXPECT_EQ(a.bound_ns, b.bound_ns);
    EXPECT_EQ(a.likely_bound_ns, b.likely_bound_ns);
    EXPECT_EQ(a.executions, b.executions);
    EXPECT_EQ(a.sync_points, b.sync_points);
    EXPECT_EQ(a.findings, b.findings);
    const auto set = again->maps.Devices(a.worker, a.core.nc_idx);
    ASSERT_EQ(set.size(), 1u);
    EXPECT_EQ(set[0].physical, a.core.physical);
    ExpectEqual(a.map, set[0].map);
  }
}

TEST(ClockRows, TheSameEvidenceGivesTheSameBytes) {
  const ClockEvidence evidence = SomeEvidence(60);
  CaptureClocks first;
  first.instances.push_back(FitInstanceClock("i-1", "boot", evidence, std::nullopt));
  CaptureClocks second;
  second.instances.push_back(FitInstanceClock("i-1", "boot", evidence, std::nullopt));
  ASSERT_GT(first.instances[0].model.segments.size(), 0u);
  const auto rows = EncodeClockRows(first);
  EXPECT_EQ(rows, EncodeClockRows(second));
  const auto again = DecodeClockRows(rows);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(EncodeClockRows(*again), rows);
  RecordProperty("bytes_a_minute", static_cast<int>(rows[0].size()));
  EXPECT_LT(rows[0].size(), 4'096u);
}

TEST(ClockRows, EveryPrefixIsRefused) {
  for (const std::string& row : EncodeClockRows(OneOfEach())) {
    for (size_t size = 0; size < row.size(); ++size) {
      EXPECT_TRUE(absl::IsInvalidArgument(DecodeClockRows({row.substr(0, size)}).status())) << size;
    }
    EXPECT_FALSE(DecodeClockRows({row + '\0'}).ok());
  }
}

TEST(ClockRows, FlippedByteIsRejectedOrValid) {
  for (const std::string& row : EncodeClockRows(OneOfEach())) {
    for (size_t at = 0; at < row.size(); ++at) {
      for (const int bit : {0, 3, 6, 7}) {
        std::string changed = row;
        changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
        const auto clocks = DecodeClockRows({changed});
        if (!clocks.ok()) continue;
        for (const InstanceClock& clock : clocks->instances) ReadEverywhere(clock);
        EXPECT_TRUE(DecodeClockRows(EncodeClockRows(*clocks)).ok());
      }
    }
  }
}

// What a fit cannot have given, in rows that are well formed.
TEST(ClockRows, RejectInvalidValues) {
  const auto refusal = [](auto change) {
    CaptureClocks clocks = OneOfEach();
    change(clocks);
    const auto again = DecodeClockRows(EncodeClockRows(clocks));
    return again.ok() ? "taken" : std::string(again.status().message());
  };
  using Clocks = CaptureClocks;
  EXPECT_THAT(refusal([](Clocks& c) { c.instances[0].model.segments[0].knots.clear(); }),
              HasSubstr("clock row 0: a segment has no knot"));
  EXPECT_THAT(refusal([](Clocks& c) {
                auto& knots = c.instances[0].model.segments[0].knots;
                std::swap(knots[0], knots[1]);
              }),
              HasSubstr("knots are out of order"));
  EXPECT_THAT(refusal([](Clocks& c) {
                c.instances[0].model.segments[0].knots[0].likely_bound_ns = UINT64_MAX;
              }),
              HasSubstr("a likely bound exceeds its bound"));
  EXPECT_THAT(refusal([](Clocks& c) { c.instances[0].model.segments[0].knots[0].y_ns = 0; }),
              HasSubstr("too steep"));
  EXPECT_THAT(refusal([](Clocks& c) { std::swap(c.instances[0], c.instances[1]); }),
              HasSubstr("instances are out of order"));
  EXPECT_THAT(refusal([](Clocks& c) { c.devices.insert(c.devices.begin(), c.devices[1]); }),
              HasSubstr("devices are out of order"));
  EXPECT_THAT(refusal([](Clocks& c) { c.devices[0].findings[0].x_end_ns = 0; }),
              HasSubstr("ends before it begins"));
}

}  // namespace
}  // namespace neurontrace
