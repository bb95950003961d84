// SPDX-License-Identifier: Apache-2.0
// Goal: a layout shows each stream with its rank, its times on the common clock, and what is
// missing of it, and its version changes exactly when what is drawn has to be drawn again.
#include "aggregator/view/capture_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/export/json/json_text.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// How far the clock of instance i-a is behind the reference.
constexpr uint64_t kBehindNs = 1'000;

class CaptureLayoutTest : public ::testing::Test {
 protected:
  // Adds a stream with ten events from `first_ns` on, and returns it.
  StreamDescription& Add(StreamIdentity identity, uint64_t first_ns = 5'000) {
    StreamDescription& stream = capture_.streams.emplace_back();
    stream.number = static_cast<uint32_t>(capture_.streams.size() - 1);
    stream.identity = std::move(identity);
    stream.events = 10;
    stream.chunks = 2;
    stream.first_timestamp_ns = first_ns;
    stream.last_timestamp_ns = first_ns + 100;
    return stream;
  }
  StreamDescription& AddCore(uint32_t nc_idx, int64_t gid, const std::string& instance = "i-a") {
    StreamDescription& stream = Add({.agent_id = "agent",
                                     .worker = {instance, "boot", 4711, 1, ""},
                                     .kind = StreamKind::kNeuronCore,
                                     .nc_idx = nc_idx});
    if (gid >= 0) stream.evidence = {{RankSource::kCommunicator, gid, 64, "test"}};
    return stream;
  }
  StreamDescription& AddFile(const std::string& name) {
    return Add({.agent_id = "agent",
                .worker = {"i-a", "boot", 4711, 1, ""},
                .kind = StreamKind::kFramework,
                .nc_idx = 0,
                .name = name});
  }
  // Gives instance i-a a clock that is behind the reference.
  void KnowClock(uint64_t bound_ns) {
    const auto map = ClockMap::FromPieces(
        {{.raw_begin_ns = 0, .reference_begin_ns = kBehindNs, .error_bound_ns = bound_ns}});
    ASSERT_TRUE(map.ok());
    clocks_.maps.Set({"i-a", "boot", 0, 0, ""}, ClockDomain::kHostRealtime, *map);
    InstanceClock clock;
    clock.instance_id = "i-a";
    clock.boot_id = "boot";
    clock.bound_ns = bound_ns;
    clocks_.instances = {clock};
  }
  CaptureLayout Make() const { return CaptureLayout::Make(record_, capture_, clocks_); }
  std::string Json() const {
    std::string json = Make().Json();
    EXPECT_TRUE(IsJson(json)) << json;
    return json;
  }
  std::vector<uint32_t> NumbersFor(std::string_view query,
                                   const std::vector<uint32_t>& chosen = {}) const {
    const auto parsed = EventQuery::Parse(query);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return Make().StreamNumbers(*parsed, chosen);
  }

  CaptureRecord record_ = {.state = CaptureState::kComplete};
  CaptureDescription capture_;
  CaptureClocks clocks_;
};

TEST_F(CaptureLayoutTest, WithoutStreamsItIsEmpty) {
  const CaptureLayout layout = Make();
  EXPECT_EQ(layout.begin_ns(), 0u);
  EXPECT_EQ(layout.end_ns(), 0u);
  EXPECT_THAT(Json(), HasSubstr("\"instances\":[],\"streams\":[]"));
}

TEST_F(CaptureLayoutTest, ReportsWhetherTheCaptureRuns) {
  const auto shows = [&](CaptureState state) {
    record_.state = state;
    return Json();
  };
  EXPECT_THAT(shows(CaptureState::kArming), HasSubstr("\"state\":\"ARMING\""));
  for (const CaptureState state : {CaptureState::kRecording, CaptureState::kStopping}) {
    EXPECT_THAT(shows(state), HasSubstr("\"state\":\"RUNNING\""));
    EXPECT_THAT(shows(state), HasSubstr("\"live\":true"));
  }
  for (const CaptureState state :
       {CaptureState::kComplete, CaptureState::kIncomplete, CaptureState::kNotBegun}) {
    EXPECT_THAT(shows(state), HasSubstr("\"state\":\"ENDED\""));
    EXPECT_THAT(shows(state), HasSubstr("\"live\":false"));
  }
}

TEST_F(CaptureLayoutTest, NamesKindRankCoreAndProcessOfEachStream) {
  AddCore(3, 7).job = "night";
  AddCore(4, -1);
  AddFile("worker0.pt.trace.json");
  AddFile("framework_mapping_1.json");
  Add({.agent_id = "agent", .worker = {"i-a", "boot", 0, 0, ""}, .kind = StreamKind::kHost});
  const std::string json = Json();
  EXPECT_THAT(json, HasSubstr("\"kind\":\"core\",\"process\":\"pid 4711\",\"job\":\"night\","
                              "\"label\":\"gid7 · nc 3\",\"gid\":7,\"core\":3"));
  EXPECT_THAT(json, HasSubstr("\"label\":\"nc 4\",\"gid\":null,\"core\":4"));
  EXPECT_THAT(json, HasSubstr("\"kind\":\"framework\",\"process\":\"pid 4711\",\"job\":\"\","
                              "\"label\":\"worker0.pt.trace.json\",\"gid\":null,\"core\":null"));
  EXPECT_THAT(json, HasSubstr("\"kind\":\"mapping\""));
  EXPECT_THAT(json,
              HasSubstr("\"kind\":\"host\",\"process\":\"\",\"job\":\"\",\"label\":\"host\""));
}

TEST_F(CaptureLayoutTest, EventsWithoutACoreAreNamedByTheirProcess) {
  AddCore(limits::kNoNcIdx, -1);
  EXPECT_THAT(Json(), HasSubstr("\"kind\":\"other\""));
  EXPECT_THAT(Json(), HasSubstr("\"label\":\"pid 4711\""));
}

TEST_F(CaptureLayoutTest, DisputedRanksAreMarkedAndDistinguished) {
  AddCore(3, 7);
  AddCore(4, 7);
  const std::string json = Json();
  EXPECT_THAT(json, HasSubstr("\"is_disputed\":true"));
  EXPECT_THAT(json, HasSubstr("gid7 (i-a pid 4711 nc 4)"));
  EXPECT_THAT(json, Not(HasSubstr("\"warnings\":[]"))) << "two cores of a job cannot be one rank";
}

TEST_F(CaptureLayoutTest, TimesAreThoseOfTheCommonClock) {
  AddCore(3, 7);
  KnowClock(250);
  const CaptureLayout layout = Make();
  EXPECT_EQ(layout.begin_ns(), 6'000u);
  EXPECT_EQ(layout.end_ns(), 6'100u);
  EXPECT_THAT(Json(), HasSubstr("\"begin_ns\":\"6000\",\"end_ns\":\"6100\",\"own_time\":false,"
                                "\"bound_known\":true,\"bound_ns\":\"250\""));
}

TEST_F(CaptureLayoutTest, UnknownBoundsAreReported) {
  AddCore(3, 7);
  AddCore(3, 8, "i-b");
  KnowClock(kNoBound);
  EXPECT_THAT(Json(), Not(HasSubstr("\"bound_known\":true")))
      << "neither a clock without a bound nor an instance without a clock has one";
}

TEST_F(CaptureLayoutTest, StreamsWithoutEventsOrWithOwnTimesDoNotStretchTheCapture) {
  AddCore(3, 7);
  StreamDescription& empty = AddCore(4, 8);
  empty.events = 0;
  empty.first_timestamp_ns = empty.last_timestamp_ns = 0;
  StreamDescription& own = AddFile("own.json");
  own.clock_domain = ClockDomain::kOwn;
  own.first_timestamp_ns = 1;
  own.last_timestamp_ns = UINT64_MAX;
  StreamDescription& mapping = AddFile("framework_mapping_1.json");
  mapping.first_timestamp_ns = 1;
  KnowClock(250);
  const CaptureLayout layout = Make();
  EXPECT_EQ(layout.begin_ns(), 6'000u);
  EXPECT_EQ(layout.end_ns(), 6'100u);
  EXPECT_THAT(Json(), HasSubstr("\"own_time\":true"));
  EXPECT_THAT(Json(), HasSubstr("\"begin_ns\":\"0\",\"end_ns\":\"0\",\"own_time\":false"))
      << "a stream without events has no times";
}

TEST_F(CaptureLayoutTest, ShowsWhatIsMissingWithItsReason) {
  StreamDescription& stream = AddCore(3, 7);
  const Loss loss = {.place = LossPlace::kRuntimeRing,
                     .reason = LossReason::kOverwritten,
                     .events = 17,
                     .first_timestamp_ns = 5'010,
                     .last_timestamp_ns = 5'020,
                     .detail = "<b>ring</b>"};
  stream.losses = {loss};
  Loss damage = loss;
  damage.place = LossPlace::kStore;
  damage.reason = LossReason::kUnknown;
  damage.events = 0;
  damage.events_unknown = true;
  Loss without_time = loss;
  without_time.first_timestamp_ns = without_time.last_timestamp_ns = 0;
  without_time.detail = "at an unknown time";
  stream.gaps = {loss, damage, without_time};
  stream.suspensions = {{.begin_ns = 5'030, .end_ns = 5'040}};
  KnowClock(250);
  const std::string json = Json();
  EXPECT_THAT(json, HasSubstr("\"lost\":\"17\""));
  EXPECT_THAT(json, HasSubstr("{\"begin_ns\":\"6010\",\"end_ns\":\"6020\",\"events\":\"17\","
                              "\"events_unknown\":false,\"kind\":\"loss\","
                              "\"reason\":\"runtime ring, overwritten\""));
  EXPECT_THAT(json, HasSubstr("\"events_unknown\":true,\"kind\":\"damage\""));
  EXPECT_THAT(json, HasSubstr("{\"begin_ns\":\"6030\",\"end_ns\":\"6040\""));
  EXPECT_THAT(json,
              HasSubstr("\"kind\":\"suspension\",\"reason\":\"another capture had the worker"));
  EXPECT_THAT(json, Not(HasSubstr("at an unknown time"))) << "it has no place on the timeline";
}

TEST_F(CaptureLayoutTest, HostileNamesStayTexts) {
  const std::string hostile = "\"},{\n\x1b[31m\xff<script>";
  record_.spec.name = hostile;
  capture_.warnings = {hostile};
  AddCore(3, 7, hostile).job = hostile;
  AddFile(hostile);
  EXPECT_THAT(Json(), HasSubstr("\\u001b"));
}

TEST_F(CaptureLayoutTest, VersionChangesWithStreamsRanksAndClocks) {
  AddCore(3, 7);
  const uint64_t version = Make().version();
  EXPECT_EQ(Make().version(), version);
  capture_.streams[0].events = 11;
  capture_.streams[0].last_timestamp_ns += 1'000;
  EXPECT_EQ(Make().version(), version) << "further events leave what is drawn in its place";
  clocks_.version = 2;
  const uint64_t fitted = Make().version();
  EXPECT_NE(fitted, version);
  clocks_.is_final = true;
  const uint64_t final_version = Make().version();
  EXPECT_NE(final_version, fitted);
  capture_.streams[0].evidence[0].worker_gid = 8;
  const uint64_t renumbered = Make().version();
  EXPECT_NE(renumbered, final_version);
  AddCore(4, 9);
  EXPECT_NE(Make().version(), renumbered);
  EXPECT_LT(Make().version(), uint64_t{1} << 53) << "browsers keep it as a number";
}

TEST_F(CaptureLayoutTest, FindsTheStreamsThatAQueryCanMatch) {
  AddCore(0, 10);
  AddCore(1, 11);
  AddCore(2, -1);
  AddFile("worker0.pt.trace.json");
  EXPECT_THAT(NumbersFor(""), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(NumbersFor("rank:11"), ElementsAre(1));
  EXPECT_THAT(NumbersFor("rank:0-20"), ElementsAre(0, 1));
  EXPECT_THAT(NumbersFor("-rank:11"), ElementsAre(0, 2, 3));
  EXPECT_THAT(NumbersFor("core:1-2 name:x"), ElementsAre(1, 2));
  EXPECT_THAT(NumbersFor("rank:10 core:1"), IsEmpty());
  EXPECT_THAT(NumbersFor("", {2, 0, 77}), ElementsAre(0, 2));
  EXPECT_THAT(NumbersFor("rank:11", {0, 2}), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
