// SPDX-License-Identifier: Apache-2.0
// Goal: every event of the selected part of a capture is one line, as it was recorded, under the
// right stream. Method: captures in memory, lines compared to the letter.
#include "aggregator/export/events/event_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "aggregator/timeline/event_script.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

StreamIdentity Core(std::string instance, uint32_t pid, uint32_t nc_idx) {
  StreamIdentity identity;
  identity.agent_id = "agent-" + instance;
  identity.worker = {.instance_id = std::move(instance), .boot_id = "b", .pid = pid};
  identity.kind = StreamKind::kNeuronCore;
  identity.nc_idx = nc_idx;
  return identity;
}

class EventLinesTest : public ::testing::Test {
 protected:
  std::vector<std::string> Write(const TimelineFilter& filter = {}) {
    std::string text;
    const auto total = WriteEventLines(
        source_, {filter, certificate_, clocks_, raw_clocks_},
        [&text](std::string_view piece) {
          text += piece;
          return absl::OkStatus();
        },
        [](const EventLinesTotal&) { return true; });
    EXPECT_TRUE(total.ok()) << total.status();
    if (!total.ok() || text.empty()) return {};
    total_ = *total;
    EXPECT_EQ(total_.bytes, text.size());
    EXPECT_EQ(text.back(), '\n');
    text.pop_back();
    return absl::StrSplit(text, '\n');
  }

  void AddInstant(const std::string& type, uint64_t timestamp_ns) {
    script_.Instant(type, timestamp_ns);
  }

  FakeChunkSource source_;
  std::string certificate_;
  const CaptureClocks* clocks_ = nullptr;
  bool raw_clocks_ = false;
  EventChunkBuilder builder_;
  EventScript script_{builder_};
  EventLinesTotal total_;
};

TEST_F(EventLinesTest, TheCertificateStandsFirst) {
  certificate_ = R"({"complete":true})";
  script_.Span("a", 100, 250, 9);
  source_.AddChunk(source_.AddStream(Core("i-a", 1, 1)), builder_);
  const auto lines = Write();
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(lines[0], R"({"certificate":{"complete":true}})");
  EXPECT_EQ(total_.events, 2u);
}

TEST_F(EventLinesTest, EveryEventIsALineWithItsStream) {
  const uint32_t stream = source_.AddStream(
      Core("i-a", 4711, 1), {{.source = RankSource::kCommunicator, .worker_gid = 35}});
  script_.Span("nrt_execute", 100, 250, 9, 7, {{"model_name", std::string("a\"b")}});
  source_.AddChunk(stream, builder_);
  const auto lines = Write();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0],
              HasSubstr(R"({"stream":0,"instance_id":"i-a","pid":4711,"nc_idx":1,"worker_gid":35,)"
                        R"("event":{"event_type":"nrt_execute","phase":"start")"));
  EXPECT_THAT(lines[0], HasSubstr(R"("data":{"model_name":"a\"b"})"));
  EXPECT_THAT(lines[1], HasSubstr(R"("phase":"stop")"));
  EXPECT_EQ(total_.events, 2u);
}

TEST_F(EventLinesTest, LineHasReferenceTimeAndBoundIfClockIsKnown) {
  const uint32_t known = source_.AddStream(Core("i-a", 1, 0));
  const uint32_t unknown = source_.AddStream(Core("i-b", 1, 0));
  AddInstant("nrt_execute", 1'000);
  script_.Instant("hw_notify", 1'005, 0, 7, {{"nc_timestamp_ns", uint64_t{3}}});
  source_.AddChunk(known, builder_);
  AddInstant("nrt_execute", 1'000);
  source_.AddChunk(unknown, builder_);
  CaptureClocks clocks;
  InstanceClock& clock = clocks.instances.emplace_back();
  clock.instance_id = "i-a";
  clock.boot_id = "b";
  clock.realtime = *ClockMap::FromPieces({{1'000, 1'200, 0, 30}});
  clock.bound_ns = 30;
  clocks.maps.Set(source_.stream(known).identity.worker, ClockDomain::kHostRealtime,
                  clock.realtime);
  clocks_ = &clocks;
  auto lines = Write();
  ASSERT_THAT(lines, SizeIs(4));
  EXPECT_THAT(lines[0], HasSubstr(R"({"clocks":{"timestamps":"reference")"));
  EXPECT_THAT(lines[0], HasSubstr(R"("bound_max_ns":30,"instances":[{"instance_id":"i-a",)"));
  EXPECT_THAT(lines[0], HasSubstr(R"("unknown":["i-b"],"order":[]})"));
  EXPECT_THAT(lines[1], HasSubstr(R"(,"reference_ns":1200,"eps_ns":30,"event":{)"));
  EXPECT_THAT(lines[1], HasSubstr(R"("timestamp_ns":1000)"));
  // The runtime made a device's time: how well is not known.
  EXPECT_THAT(lines[2], HasSubstr(R"(,"reference_ns":1205,"event":{)"));
  EXPECT_THAT(lines[3], HasSubstr(R"("worker_gid":-1,"event":{)"));
  raw_clocks_ = true;
  lines = Write();
  EXPECT_THAT(lines[0], HasSubstr(R"({"clocks":{"timestamps":"recorded")"));
  EXPECT_THAT(lines[1], HasSubstr(R"("worker_gid":-1,"event":{)"));
}

TEST_F(EventLinesTest, AFrameworkFileHasANameAndNoCore) {
  StreamIdentity identity = Core("i-a", 0, limits::kNoNcIdx);
  identity.kind = StreamKind::kFramework;
  identity.name = "worker0.json";
  const uint32_t stream = source_.AddStream(identity);
  AddInstant("cpu_op", 5);
  source_.AddChunk(stream, builder_);
  EXPECT_THAT(
      Write(),
      ElementsAre(HasSubstr(R"("nc_idx":-1,"worker_gid":-1,"file":"worker0.json","event":{)")));
}

TEST_F(EventLinesTest, AnnotationsAreMarkedAndHaveNoFile) {
  StreamIdentity identity = Core("i-a", 4711, limits::kNoNcIdx);
  identity.kind = StreamKind::kAnnotation;
  identity.name = "annotations";
  const uint32_t stream = source_.AddStream(identity);
  AddInstant("annotation", 5);
  source_.AddChunk(stream, builder_);
  EXPECT_THAT(Write(),
              ElementsAre(HasSubstr(
                  R"("pid":4711,"nc_idx":-1,"worker_gid":-1,"annotations":true,"event")")));
}

TEST_F(EventLinesTest, AValueOverSeveralLinesStaysOnOne) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  const auto shape = builder_.InternShape({.event_type = "cpu_op",
                                           .phase = Phase::kInstant,
                                           .present = FieldBit(Field::kTimestamp),
                                           .keys = {{"dims", ValueType::kJson}}});
  ASSERT_TRUE(shape.ok());
  const AttributeValue value{.text = "[\n 1,\r\n 2]"};
  ASSERT_TRUE(builder_.Append(*shape, {.timestamp_ns = 5}, {&value, 1}).ok());
  source_.AddChunk(stream, builder_);
  EXPECT_THAT(Write(), ElementsAre(HasSubstr(R"("dims":[  1,   2])")));
}

TEST_F(EventLinesTest, FiltersLeaveOutStreamsTypesAndTimes) {
  for (const auto& [instance, nc] : {std::pair{"i-a", 0u}, {"i-a", 1u}, {"i-b", 0u}}) {
    const uint32_t stream = source_.AddStream(Core(instance, 1, nc));
    for (uint64_t chunk = 0; chunk < 3; ++chunk) {
      AddInstant("hw_notify", 100 * chunk);
      AddInstant("nrt_execute", 100 * chunk + 50);
      source_.AddChunk(stream, builder_);
    }
  }
  EXPECT_THAT(Write(), SizeIs(18));
  TimelineFilter filter;
  filter.instance_ids = {"i-a"};
  EXPECT_THAT(Write(filter), SizeIs(12));
  filter.neuron_cores = {1};
  EXPECT_THAT(Write(filter), SizeIs(6));
  filter.event_types = *EventFilter::Parse({"hardware"});
  EXPECT_THAT(Write(filter), SizeIs(3));
  filter.window_start_ns = 100;
  filter.window_end_ns = 200;
  EXPECT_THAT(Write(filter), ElementsAre(HasSubstr(R"("timestamp_ns":100)")));
  EXPECT_EQ(total_.chunks_total, 3u);
  EXPECT_EQ(total_.chunks_read, 1u);
  filter.window_start_ns = 101;
  EXPECT_THAT(Write(filter), IsEmpty());
}

TEST_F(EventLinesTest, ManyChunksAreReadPageByPage) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  for (uint64_t i = 0; i < 1000; ++i) {
    AddInstant("hw_notify", i / 300);  // many chunks end at the same time
    source_.AddChunk(stream, builder_);
  }
  EXPECT_THAT(Write(), SizeIs(1000));
}

TEST_F(EventLinesTest, ReportsAndSkipsLostChunk) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  for (uint64_t i = 0; i < 3; ++i) {
    AddInstant("hw_notify", i);
    source_.AddChunk(stream, builder_);
  }
  source_.Lose(stream, 1);
  EXPECT_THAT(Write(), SizeIs(2));
  EXPECT_THAT(total_.warnings, ElementsAre(HasSubstr("chunk 1 of i-a pid 1 nc 0")));
}

TEST_F(EventLinesTest, AChunkWithoutASelectedTypeIsNotRead) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  for (const std::string type : {"hw_notify", "nrt_execute", "hw_notify"}) {
    AddInstant(type, 1);
    source_.AddChunk(stream, builder_);
  }
  source_.Lose(stream, 1);
  TimelineFilter filter;
  filter.event_types = *EventFilter::Parse({"hardware"});
  EXPECT_THAT(Write(filter), SizeIs(2));
  EXPECT_EQ(total_.chunks_read, 2u);
  EXPECT_EQ(total_.chunks_left_out, 0u);
  EXPECT_THAT(total_.warnings, IsEmpty());
}

TEST_F(EventLinesTest, EndsWhenTheReceiverFailsOrNobodyListens) {
  const uint32_t stream = source_.AddStream(Core("i-a", 1, 0));
  AddInstant("hw_notify", 1);
  source_.AddChunk(stream, builder_);
  const auto take = [](std::string_view) { return absl::OkStatus(); };
  const auto refuse = [](std::string_view) { return DataLoss("the disk is full"); };
  const auto failed =
      WriteEventLines(source_, {}, refuse, [](const EventLinesTotal&) { return true; });
  EXPECT_EQ(failed.status(), DataLoss("the disk is full"));
  const auto left =
      WriteEventLines(source_, {}, take, [](const EventLinesTotal&) { return false; });
  EXPECT_EQ(left.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace neurontrace
