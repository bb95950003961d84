// SPDX-License-Identifier: Apache-2.0
// Goal: each check of clocks finds what it is for, and nothing in a trace that is sound; times come
// out as Perfetto's importer of August 2026 converts them. Method: traces made by hand.
#include "lib/validate/trace_maker.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TraceClocks : public TraceMaker {
 protected:
  static constexpr uint32_t kRealtime = 1, kMonotonic = 3, kBoottime = 6;

  void ClocksAre(const std::vector<Clock>& clocks, uint32_t primary) {
    Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint32(13, 1);
      packet.add_message(6, Snapshot(clocks, primary));
    });
  }
  // An instant on track 0; `clock` 0: says none.
  void At(uint64_t time, uint32_t clock) {
    Packet([&](protozero::pbf_writer& packet) {
      packet.add_uint64(8, time);
      if (clock != 0) packet.add_uint32(58, clock);
      packet.add_message(11, Message([](auto& event) { event.add_uint32(9, kInstant); }));
    });
  }
};

TEST_F(TraceClocks, ClocksThatAreRelatedThroughOthers) {
  Packet([](auto& packet) {
    packet.add_uint32(13, 1);
    packet.add_message(6, Snapshot({{1, 5'000}, {6, 100}}));
  });
  Packet([](auto& packet) { packet.add_message(6, Snapshot({{3, 20}, {6, 200}})); });
  Packet([](auto& packet) {
    packet.add_uint64(8, 30);  // MONOTONIC 30 is BOOTTIME 210, and that REALTIME 5110
    packet.add_uint32(58, 3);
    packet.add_message(11, Message([](auto& event) { event.add_uint32(9, kInstant); }));
  });
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.first_ns, 5'110u);
}

TEST_F(TraceClocks, ClockSnapshots) {
  const auto checks_of = [&](const std::string& snapshot, bool of_sequence = true) {
    trace_.clear();
    Header();
    Packet([&](auto& packet) { packet.add_message(6, snapshot); }, of_sequence);
    return Checks();
  };
  EXPECT_THAT(checks_of(Snapshot({{64, 2'000, true}, {1, 2'000}})), IsEmpty());
  EXPECT_THAT(checks_of(Snapshot({{1, 2'000}, {1, 2'000}})), ElementsAre("clock_snapshot"));
  EXPECT_THAT(checks_of(Snapshot({{3, 2'000, true}, {1, 2'000}})), ElementsAre("clock_snapshot"));
  EXPECT_THAT(checks_of(Snapshot({{64, 2'000}, {1, 2'000}})), ElementsAre("clock_snapshot"));
  EXPECT_THAT(checks_of(Snapshot({{64, 2'000, true}, {1, 999}})), ElementsAre("clock_snapshot"));
  EXPECT_THAT(checks_of(Snapshot({{64, 2'000, true}, {1, 2'000}}), false),
              ElementsAre("clock_snapshot"));
}

TEST_F(TraceClocks, ATraceClockThatDoesNotCountNanoseconds) {
  Packet([](auto& packet) {
    packet.add_message(6, Message([](auto& snapshot) {
                         snapshot.add_message(1, Message([](auto& reading) {
                                                reading.add_uint32(1, 1);
                                                reading.add_uint64(2, 5);
                                                reading.add_uint64(4, 1'000);
                                              }));
                         snapshot.add_enum(2, 1);
                       }));
  });
  EXPECT_THAT(Checks(), ElementsAre("clock_snapshot"));
}

// The first two of these alone do not determine the trace's clock.
TEST_F(TraceClocks, SnapshotsThatAreRelatedLater) {
  ClocksAre({{64, 1'000, true}, {kMonotonic, 20}}, kRealtime);
  ClocksAre({{kMonotonic, 30}, {5, 300}}, kRealtime);
  ClocksAre({{5, 400}, {kBoottime, 100}, {kRealtime, 5'000}}, kRealtime);
  At(7, 64);  // MONOTONIC 27, which is 297 by clock 5, and that 4,897
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.first_ns, 4'897u);
}

TEST_F(TraceClocks, BoottimeThatNothingRelates) {
  ClocksAre({{64, 1'000, true}, {kRealtime, 1'000}}, kRealtime);
  const std::string without = trace_;
  EXPECT_THAT(Checks(), IsEmpty()) << "no time is converted";
  At(1, 64);
  At(1, 64);
  TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), ElementsAre("clock_domains"));
  EXPECT_EQ(report.findings.errors(), 1u) << "once a file";
  EXPECT_EQ(report.summary.instants, 2u);
  ClocksAre({{kBoottime, 7}, {kRealtime, 2'000}}, kRealtime);
  EXPECT_THAT(Checks(), ElementsAre("clock_domains")) << "too late";
  trace_ = without;
  ClocksAre({{kBoottime, 7}, {kRealtime, 2'000}}, kRealtime);
  At(1, 64);
  EXPECT_THAT(Checks(), IsEmpty());
}

TEST_F(TraceClocks, ATraceClockOfBoottimeIsRelatedToItself) {
  ClocksAre({{64, 1'000, true}, {kBoottime, 1'000}}, 0);
  At(1, 64);
  EXPECT_THAT(Checks(), IsEmpty());
  EXPECT_FALSE(Validate().summary.is_realtime);
}

TEST_F(TraceClocks, AFileWithoutSnapshotsIsByBoottime) {
  At(50, kBoottime);
  At(60, 0);
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.first_ns, 50u);
  EXPECT_EQ(report.summary.last_ns, 60u);
  At(70, kMonotonic);
  EXPECT_THAT(Checks(), ElementsAre("clock"));
}

TEST_F(TraceClocks, OnceATimeWasConvertedTheTraceClockStays) {
  ClocksAre({{kBoottime, 100}, {kRealtime, 5'000}}, kRealtime);
  At(5'010, 0);
  ClocksAre({{kBoottime, 200}, {kRealtime, 5'100}}, kBoottime);
  At(220, 0);  // by the clock that the second says, put on the first's
  const TraceReport report = Validate();
  EXPECT_THAT(ChecksOf(report), IsEmpty());
  EXPECT_EQ(report.summary.first_ns, 5'010u);
  EXPECT_EQ(report.summary.last_ns, 5'120u);
}

}  // namespace
}  // namespace neurontrace
