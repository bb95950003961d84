// SPDX-License-Identifier: Apache-2.0
// Goal: an export says what is known of its clocks: bounds, corrections, findings, which stamps are
// not aligned. Method: captures in memory with clocks made by hand, exported and read back.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/export/pftrace/clock_tracks.h"
#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using pftrace_check::Check;
using pftrace_check::Report;
using pftrace_check::Slice;
using pftrace_check::Track;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;
using ::testing::SizeIs;

class ClockTest : public ExportFixture {
 protected:
  using Piece = ClockMap::Piece;

  // The clock of an instance in the fixture's boot; the last added is returned.
  InstanceClock& AddClock(const std::string& instance, std::vector<Piece> pieces,
                          uint64_t bound_ns) {
    InstanceClock& clock = clocks_.instances.emplace_back();
    clock.instance_id = instance;
    clock.boot_id = "boot";
    clock.realtime = *ClockMap::FromPieces(std::move(pieces));
    clock.bound_ns = bound_ns;
    clock.model.algorithm_version = 3;
    clock.sources = {"udp"};
    clocks_.maps.Set(Core(instance, 0, 0).worker, ClockDomain::kHostRealtime, clock.realtime);
    return clock;
  }
  ExportRequest Aligned() const {
    ExportRequest request;
    request.clocks = &clocks_;
    return request;
  }
  Report ExportAndCheck(const ExportRequest& request) {
    Report report = Check(Export("perfetto", request));
    EXPECT_THAT(report.errors, IsEmpty());
    return report;
  }
  static const Track* Find(const Report& report, std::string_view process, std::string_view name) {
    for (const Track& track : report.tracks) {
      if (track.process == process && track.name == name) return &track;
    }
    return nullptr;
  }
  // Two instances, the second half a millisecond behind; a span of each at the same moment.
  void AddTwoInstances() {
    Close(AddCore("i-a", 1, 0, 0), "span");
    script_.Span("span", kBase - 500'000, kBase - 500'000 + 10, 1);
    Close(AddCore("i-b", 1, 0, 1));
    AddClock("i-a", {{kBase, kBase, 0, 4'000}}, 4'000);
    AddClock("i-b", {{kBase, kBase + 500'000, 0, 25'000}}, 25'000);
  }

  CaptureClocks clocks_;
};

TEST_F(ClockTest, ShowsBoundAndCorrectionOfEachInstance) {
  AddTwoInstances();
  const Report report = ExportAndCheck(Aligned());
  const Track* bound = Find(report, "i-b-pid1", "clock bound");
  ASSERT_NE(bound, nullptr);
  EXPECT_TRUE(bound->is_counter);
  EXPECT_THAT(bound->counter, ElementsAre(Pair(kBase, 25'000)));
  const Track* correction = Find(report, "i-b-pid1", "clock correction");
  ASSERT_NE(correction, nullptr);
  EXPECT_THAT(correction->counter, ElementsAre(Pair(kBase, 500'000)));
  EXPECT_THAT(Find(report, "i-a-pid1", "clock bound")->counter, ElementsAre(Pair(kBase, 4'000)));
  // The spans are at one time, and the one that may be far off says so.
  const Slice& exact = *report.SlicesOfRow("gid0-nc0-tid7-neuron_rt").front();
  const Slice& vague = *report.SlicesOfRow("gid1-nc0-tid7-neuron_rt").front();
  EXPECT_EQ(exact.start_ns, vague.start_ns);
  EXPECT_THAT(exact.arguments, Not(Contains(Key("eps_ns"))));
  EXPECT_THAT(exact.arguments, Not(Contains(Key("ts_raw_ns"))));
  EXPECT_THAT(vague.arguments, Contains(Pair("eps_ns", "25000")));
  EXPECT_THAT(vague.arguments, Contains(Pair("ts_raw_ns", fmt::format("{}", kBase - 500'000))));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock", "reference")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.algorithm_version", "3")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.version", "0")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.final", "false")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.bound_max_ns", "25000")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.instances", "2 of 2")));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.words",
                                               HasSubstr("within 25.0 us at worst (i-b)"))));
}

TEST_F(ClockTest, ArgumentsOnRequestStandOnEverySlice) {
  AddTwoInstances();
  ExportRequest request = Aligned();
  request.clock_arguments = true;
  const Report report = ExportAndCheck(request);
  for (const char* row : {"gid0-nc0-tid7-neuron_rt", "gid1-nc0-tid7-neuron_rt"}) {
    EXPECT_THAT(report.SlicesOfRow(row).front()->arguments, Contains(Key("eps_ns")));
    EXPECT_THAT(report.SlicesOfRow(row).front()->arguments, Contains(Key("ts_raw_ns")));
  }
}

TEST_F(ClockTest, UnknownClockIsReportedAmongKnown) {
  AddTwoInstances();
  Close(AddCore("i-c", 1, 0, 2), "span");
  const Report report = ExportAndCheck(Aligned());
  EXPECT_THAT(report.SlicesOfRow("gid2-nc0-tid7-neuron_rt").front()->arguments,
              Contains(Pair("eps_unknown", "true")));
  EXPECT_EQ(Find(report, "i-c-pid1", "clock bound"), nullptr);
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock.words",
                                               HasSubstr("times of i-c are not aligned"))));
}

TEST_F(ClockTest, WithoutClocksNothingIsClaimed) {
  Close(AddCore("i-a", 1, 0, 0), "span");
  const Report report = ExportAndCheck({});
  EXPECT_EQ(report.counters, 0u);
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock", "recorded")));
  EXPECT_THAT(report.SlicesOfRow("gid0-nc0-tid7-neuron_rt").front()->arguments,
              Not(Contains(Key("eps_unknown"))));
}

TEST_F(ClockTest, RawClocksLeaveEveryStampAsItIs) {
  AddTwoInstances();
  ExportRequest request = Aligned();
  request.raw_clocks = true;
  const Report report = ExportAndCheck(request);
  const Slice& behind = *report.SlicesOfRow("gid1-nc0-tid7-neuron_rt").front();
  EXPECT_EQ(behind.start_ns, kBase - 500'000);
  EXPECT_THAT(behind.arguments, Not(Contains(Key("eps_ns"))));
  EXPECT_THAT(report.attributes, Contains(Pair("io.neurontrace.clock", "recorded")));
  EXPECT_THAT(report.attributes,
              Contains(Pair("io.neurontrace.clock.words", HasSubstr("not aligned"))));
  // What would have been done is still shown.
  EXPECT_THAT(Find(report, "i-b-pid1", "clock correction")->counter,
              ElementsAre(Pair(kBase - 500'000, 500'000)));
}

TEST_F(ClockTest, ShowsFindings) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("span", kBase, kBase + 1'000, 1);
  Close(stream);
  InstanceClock& clock = AddClock("i-a", {{kBase, kBase + 100, 0, 40}}, 40);
  ClockSegment& segment = clock.model.segments.emplace_back();
  segment.knots = {{50, kBase + 100, 40, 40}, {2'050, kBase + 2'100, 40, 40}};
  clock.model.findings = {{ClockFindingKind::kBreak, 350, 450, -70, "it stepped"},
                          {ClockFindingKind::kRejectedEvidence, 250, 250, 9, "too early"},
                          {ClockFindingKind::kRouteChange, 99'000, 99'000, 9, "after the end"}};
  const Report report = ExportAndCheck(Aligned());
  const Track* track = Find(report, "i-a-pid1", "clock");
  ASSERT_NE(track, nullptr);
  ASSERT_THAT(track->instants, SizeIs(2));
  EXPECT_EQ(track->instants[0].name, "clock rejected evidence");
  EXPECT_EQ(track->instants[0].start_ns, kBase + 300);
  EXPECT_EQ(track->instants[1].name, "clock break");
  EXPECT_EQ(track->instants[1].start_ns, kBase + 400);
  EXPECT_THAT(
      track->instants[1].arguments,
      ElementsAre(Pair("amount_ns", "-70"), Pair("instance_id", "i-a"), Pair("raw_begin_ns", "350"),
                  Pair("raw_end_ns", "450"), Pair("words", "it stepped")));
  EXPECT_THAT(Export("json", Aligned()),
              HasSubstr(fmt::format(R"({{"kind":"break","at_ns":{},"raw_begin_ns":350,)"
                                    R"("raw_end_ns":450,"amount_ns":-70,"words":"it stepped"}})",
                                    kBase + 400)));
}

TEST_F(ClockTest, ShowsWhatIsLeftBeforeItIsEntered) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("span", kBase, kBase + 1'000, 1);
  Close(stream);
  AddClock("i-a", {{kBase, kBase, 0, 40}}, 40);
  OrderCheck& check = clocks_.order.emplace_back();
  check.world_size = 2;
  check.event_type = "cc_running";
  check.events = 20;
  check.instances = 10;
  check.violated = 1;
  check.worst_ns = 70;
  check.is_conclusive = true;
  check.words = "1 of 10";
  check.violations = {{kBase + 300, 70, 80, 5, 6, "i-b", "i-a"},
                      {kBase + 400, 60, 80, 6, 6, "i-a", "i-b"}};
  DeviceClock& device = clocks_.devices.emplace_back();
  device.map.parts.resize(2);
  device.bound_ns = 900;
  const Report report = ExportAndCheck(Aligned());
  const Track* track = Find(report, "i-a-pid1", "clock");
  ASSERT_NE(track, nullptr);
  ASSERT_THAT(track->instants, SizeIs(1)) << "the other stands where that instance is shown";
  EXPECT_EQ(track->instants[0].name, "cc_running left before it was entered");
  EXPECT_EQ(track->instants[0].start_ns, kBase + 300);
  EXPECT_THAT(track->instants[0].arguments, Contains(Pair("amount_ns", "70")));
  EXPECT_THAT(track->instants[0].arguments, Contains(Pair("entered_by", "i-b")));
  const std::string json = Export("json", Aligned());
  EXPECT_THAT(json, HasSubstr(R"("devices":{"known":1,"unknown":0,"bound_max_ns":900,)"));
  EXPECT_THAT(json, HasSubstr(R"("restarts":1})"));
  EXPECT_THAT(json, HasSubstr(R"("order":[{"job":"","world_size":2,"event_type":"cc_running",)"
                              R"("events":20,"left_out":0,"instances":10,"violated":1,)"
                              R"("beyond_bounds":0,"worst_ns":70,"conclusive":true,)"
                              R"("words":"1 of 10","violations":[)"));
  EXPECT_THAT(json, HasSubstr(fmt::format(R"({{"at_ns":{},"amount_ns":70,"bound_ns":80,)"
                                          R"("exec_id":5,"op_id":6,"entered_by":"i-b",)"
                                          R"("left_by":"i-a"}})",
                                          kBase + 300)));
}

TEST_F(ClockTest, ManyFindingsAreThinnedToTheWorst) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("span", kBase, kBase + 100'000, 1);
  Close(stream);
  InstanceClock& clock = AddClock("i-a", {{kBase, kBase, 0, 40}}, 40);
  clock.model.segments.emplace_back().knots = {{1, kBase, 40, 40}, {99'999, kBase + 99'998, 4, 4}};
  for (int64_t i = 0; i < 500; ++i) {
    clock.model.findings.push_back({ClockFindingKind::kRejectedEvidence,
                                    static_cast<uint64_t>(10 + i), 600, i == 77 ? -10'000 : i, ""});
  }
  clock.model.findings.push_back({ClockFindingKind::kBreak, 7, 8, 1, ""});
  const Track track = *Find(ExportAndCheck(Aligned()), "i-a-pid1", "clock");
  ASSERT_THAT(track.instants, SizeIs(64));
  EXPECT_EQ(track.instants[0].name, "clock break");
  EXPECT_THAT(track.instants[1].arguments, Contains(Pair("amount_ns", "-10000")));
  EXPECT_THAT(track.instants[1].arguments, Contains(Pair("findings_left_out", "437")));
}

TEST_F(ClockTest, TimesThatTheRuntimeMadeOfADevicesAreMarked) {
  const uint32_t stream = AddCore("i-a", 1, 0, 0);
  script_.Span("cc_running", kBase, kBase + 100, 1, 7, {{"nc_timestamp_ns", uint64_t{5}}});
  script_.Instant("timestamp_sync_point", kBase + 200, 0, 7,
                  {{"cpu_timestamp_ns", kBase}, {"nc_timestamp_ns", uint64_t{6}}});
  Close(stream);
  AddClock("i-a", {{kBase, kBase + 1, 0, 40}}, 40);
  const Report report = ExportAndCheck(Aligned());
  EXPECT_THAT(report.SlicesOfRow("gid0-nc0-tid7-neuron_hw").front()->arguments,
              Contains(Pair("clock", "vendor")));
  EXPECT_THAT(report.FindRow("gid0-nc0-tid7-neuron_rt")->instants.front().arguments,
              Not(Contains(Key("clock"))));
  const std::string json = Export("json", Aligned());
  EXPECT_THAT(json, HasSubstr(R"("nc_start_timestamp_ns":5,"clock":"vendor"})"));
  EXPECT_THAT(json, HasSubstr(R"("nc_timestamp_ns":6,"eps_ns":40})"));
}

TEST_F(ClockTest, JsonHasBoundOfEachEventAndClocks) {
  AddTwoInstances();
  clocks_.version = 2;
  clocks_.is_final = true;
  ExportRequest request = Aligned();
  std::string json = Export("json", request);
  EXPECT_THAT(json, HasSubstr(R"("trace_event_source":"neuron_rt","eps_ns":4000})"));
  EXPECT_THAT(json, HasSubstr(R"("clocks":{"timestamps":"reference","words":"times are on the)"));
  EXPECT_THAT(json, HasSubstr(R"("version":2,"final":true,"algorithm_version":3,)"
                              R"("bound_max_ns":25000,"instances":[)"
                              R"({"instance_id":"i-a","boot_id":"boot","bound_ns":4000,)"));
  request.clock_arguments = true;
  json = Export("json", request);
  EXPECT_THAT(json, HasSubstr(fmt::format(R"("eps_ns":25000,"ts_raw_ns":{}}})", kBase - 500'000)));
  request.raw_clocks = true;
  json = Export("json", request);
  EXPECT_THAT(json, HasSubstr(fmt::format(R"("name":"span","timestamp":{},)", kBase - 500'000)));
  EXPECT_THAT(json, Not(HasSubstr("eps_ns")));
  EXPECT_THAT(json, HasSubstr(R"("clocks":{"timestamps":"recorded")"));
}

TEST(ClockPointsTest, APointWhereEachPieceBeginsWithinTheStretch) {
  const ClockMap map = *ClockMap::FromPieces({{1'000, 1'100, 0, 10},
                                              {2'000, 2'150, 0, 20},
                                              {3'000, 3'150, 0, 20},
                                              {4'000, 4'160, 0, std::nullopt},
                                              {5'000, 5'160, 0, 5}});
  const ClockInterval stretch{.begin_ns = 1'500, .end_ns = 5'000};
  EXPECT_THAT(BoundPoints(map, stretch, 100),
              ElementsAre(ClockPoint{1'500, 10}, ClockPoint{2'150, 20},
                          ClockPoint{4'160, ClockPoint::kUnknown}));
  EXPECT_THAT(CorrectionPoints(map, stretch, 100),
              ElementsAre(ClockPoint{1'500, 100}, ClockPoint{2'150, 150}, ClockPoint{4'160, 160}));
  EXPECT_THAT(CorrectionPoints(map, {.begin_ns = 500, .end_ns = 2'001, .is_raw = true}, 100),
              ElementsAre(ClockPoint{500, 100}, ClockPoint{2'000, 150}));
  EXPECT_THAT(BoundPoints(map, {.begin_ns = 9'000, .end_ns = 9'001}, 100),
              ElementsAre(ClockPoint{9'000, 5}));
  EXPECT_THAT(BoundPoints(map, {.begin_ns = 7, .end_ns = 7}, 100), IsEmpty());
}

TEST(ClockPointsTest, WhenTheyAreThinnedTheWorstStays) {
  std::vector<ClockMap::Piece> pieces;
  for (uint64_t i = 0; i < 1'000; ++i) {
    const bool is_ahead = i == 613;  // by 50 at its begin
    pieces.push_back({1'000 * i, 1'000 * i + (is_ahead ? 150 : 100),
                      is_ahead ? -(int64_t{1} << ClockMap::kRateBits) / 20 : 0,
                      i == 205 ? 9'999 : i % 7});
  }
  const ClockMap map = *ClockMap::FromPieces(pieces);
  const ClockInterval stretch{.begin_ns = 0, .end_ns = 1'000'000};
  const auto bounds = BoundPoints(map, stretch, 50);
  EXPECT_LE(bounds.size(), 50u);
  // No point says less than any piece up to the next one does.
  for (uint64_t i = 0; i < 1'000; ++i) {
    const auto after = std::upper_bound(
        bounds.begin(), bounds.end(), pieces[i].reference_begin_ns,
        [](uint64_t at_ns, const ClockPoint& point) { return at_ns < point.at_ns; });
    EXPECT_GE((after == bounds.begin() ? after : after - 1)->value,
              static_cast<int64_t>(*pieces[i].error_bound_ns));
  }
  const auto corrections = CorrectionPoints(map, stretch, 50);
  EXPECT_LE(corrections.size(), 51u);
  EXPECT_THAT(corrections, Contains(ClockPoint{613'150, 150}));
}

}  // namespace
}  // namespace neurontrace
