// SPDX-License-Identifier: Apache-2.0
// The links of an event, the chain that they form, and what is said of links that are missing.
#include "aggregator/view/event_linker.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "aggregator/view/event_collector.h"
#include "aggregator/view/view_test_support.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class EventLinkerTest : public ViewFixture, private WindowReader {
 protected:
  // A call with its preparation, the run of two physical cores, and a collective in it.
  void AddExecution(uint32_t stream, uint64_t at_ns, uint64_t exec_id, uint64_t arrival_ns) {
    const EventScript::Attributes ids = {{"exec_id", exec_id}};
    const EventScript::Attributes operation = {{"exec_id", exec_id}, {"op_id", uint64_t{2}}};
    script_.Start("nrt_execute", at_ns, exec_id * 10, 7);
    script_.Start("kbl_exec_pre", at_ns + 10, exec_id * 10 + 1, 7, ids);
    script_.Stop("kbl_exec_pre", at_ns + 20, exec_id * 10 + 1, 7);
    script_.Start("nc_exec_running", at_ns + 100, exec_id * 10 + 2, 0, ids);
    script_.Start("nc_exec_running", at_ns + 101, exec_id * 10 + 3, 1, ids);
    script_.Start("cc_running", arrival_ns, exec_id * 10 + 4, 2, operation);
    script_.Stop("cc_running", at_ns + 800, exec_id * 10 + 4, 2);
    script_.Stop("nc_exec_running", at_ns + 900, exec_id * 10 + 2, 0);
    script_.Stop("nc_exec_running", at_ns + 901, exec_id * 10 + 3, 1);
    script_.Stop("nrt_execute", at_ns + 950, exec_id * 10, 7);
    Close(stream);
  }

  // The id that `events` gives the only event with this name in the window.
  std::string IdOf(std::string_view query) {
    auto parsed = EventQuery::Parse(query);
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    EventCollector collector({.from_ns = kBase,
                              .to_ns = kBase + 1'000'000,
                              .limit = 1,
                              .query = *std::move(parsed),
                              .is_search = true});
    ViewFixture::Read(collector, kBase, kBase + 1'000'000);
    const std::string json = collector.Json(true, 0);
    const size_t begin = json.find("\"id\":\"");
    EXPECT_NE(begin, std::string::npos) << query << ": " << json;
    const size_t text = begin + 6;
    return begin == std::string::npos ? "" : json.substr(text, json.find('"', text) - text);
  }

  absl::StatusOr<std::string> Links(const std::string& id, EventLinker::Options options) {
    CaptureRecord record;
    record.state = CaptureState::kComplete;
    const CaptureLayout layout = CaptureLayout::Make(record, *source_.Describe(), CaptureClocks());
    ASSIGN_OR_RETURN(const EventId event, EventId::Parse(id));
    EventLinker linker(layout, *this);
    return linker.Json(event, options);
  }
  std::string LinksOf(const std::string& id) {
    const auto json = Links(id, {.chunks_max = 1'000});
    EXPECT_TRUE(json.ok()) << json.status();
    return json.value_or("");
  }
  std::string ChainOf(const std::string& id, EventLinker::Options options) {
    if (options.chunks_max == 0) options.chunks_max = 1'000;
    const auto json = Links(id, options);
    EXPECT_TRUE(json.ok()) << json.status();
    return json.ok() ? json->substr(json->find("\"chain\"")) : "";
  }
  static std::string Link(std::string_view kind, std::string_view direction, bool is_direct,
                          std::string_view id) {
    return fmt::format(R"({{"kind":"{}","direction":"{}","direct":{},"id":"{}")", kind, direction,
                       is_direct, id);
  }

 private:
  absl::StatusOr<ViewReading> Read(uint64_t from_ns, uint64_t to_ns,
                                   const std::vector<uint32_t>& streams,
                                   ViewCollector& collector) override {
    EXPECT_FALSE(streams.empty());
    EXPECT_LT(from_ns, to_ns);
    ViewFixture::Read(collector, from_ns, to_ns);
    return ViewReading{.chunks_read = 1};
  }
};

TEST_F(EventLinkerTest, CallLeadsToItsPreparationAndItsExecution) {
  AddExecution(AddCore(3, 7), kBase + 1'000, 5, kBase + 1'500);
  const std::string call = IdOf("name:nrt_execute");
  const std::string links = LinksOf(call);
  EXPECT_THAT(links, HasSubstr(Link("exec_id", "downstream", true, IdOf("name:kbl_exec_pre"))));
  EXPECT_THAT(links, HasSubstr(Link("exec_id", "downstream", false, IdOf("name:nc_exec_running"))));
  EXPECT_THAT(links, HasSubstr(R"("more":"0","unlinked":[])"));
  EXPECT_THAT(links, HasSubstr(R"("cut":null)"));
}

TEST_F(EventLinkerTest, ExecutionLeadsBackToItsCallAndOnToItsParts) {
  AddExecution(AddCore(3, 7), kBase + 1'000, 5, kBase + 1'500);
  const std::string links = LinksOf(IdOf("name:nc_exec_running"));
  EXPECT_THAT(links, HasSubstr(Link("exec_id", "upstream", false, IdOf("name:nrt_execute"))));
  EXPECT_THAT(links, HasSubstr(Link("exec_id", "upstream", true, IdOf("name:kbl_exec_pre"))));
  EXPECT_THAT(links,
              HasSubstr(Link("execution_part", "downstream", true, IdOf("name:cc_running"))));
}

TEST_F(EventLinkerTest, EveryoneInACollectiveWaitsForTheLastToArrive) {
  AddExecution(AddCore(0, 0), kBase + 1'000, 5, kBase + 1'300);
  AddExecution(AddCore(1, 1), kBase + 1'000, 5, kBase + 1'700);
  AddExecution(AddCore(2, 2), kBase + 1'000, 5, kBase + 1'500);
  const std::string first = IdOf("name:cc_running rank:0");
  const std::string last = IdOf("name:cc_running rank:1");
  const std::string middle = IdOf("name:cc_running rank:2");
  const std::string links = LinksOf(middle);
  EXPECT_THAT(links, HasSubstr(Link("collective", "upstream", true, last)));
  EXPECT_THAT(links, HasSubstr(Link("collective", "downstream", true, first)));
  // From the first to the last, and on to what made that one late.
  const std::string chain = ChainOf(first, {.direction = LinkDirection::kUpstream, .breadth = 8});
  EXPECT_THAT(chain, AllOf(HasSubstr(fmt::format(R"("distance":1,"from":"{}")", first)),
                           HasSubstr(Link("collective", "upstream", true, last).substr(1)),
                           HasSubstr(IdOf("name:nrt_execute rank:1")),
                           Not(HasSubstr(fmt::format(R"("id":"{}")", middle)))));
}

TEST_F(EventLinkerTest, ChainReportsWhatItsLimitsLeaveOut) {
  AddExecution(AddCore(3, 7), kBase + 1'000, 5, kBase + 1'500);
  const std::string call = IdOf("name:nrt_execute");
  const std::string whole = ChainOf(call, {.direction = LinkDirection::kDownstream});
  EXPECT_THAT(whole, AllOf(HasSubstr("\"distance\":3"), HasSubstr("cc_running"),
                           HasSubstr("\"cut\":null")));
  EXPECT_THAT(ChainOf(call, {.direction = LinkDirection::kDownstream, .depth = 1}),
              AllOf(HasSubstr("links are followed up to 1 events away"),
                    Not(HasSubstr("nc_exec_running"))));
  EXPECT_THAT(ChainOf(call, {.direction = LinkDirection::kDownstream, .breadth = 1}),
              HasSubstr("of one event at most 1 links are followed"));
  EXPECT_THAT(ChainOf(call, {.direction = LinkDirection::kDownstream, .chunks_max = 1}),
              HasSubstr("the chain ends after 1 chunks were read"));
}

TEST_F(EventLinkerTest, ReportsWhatIsMissing) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("nrt_execute", kBase + 100, kBase + 200, 1);
  script_.Span("nc_exec_running", kBase + 300, kBase + 400, 2, 0, {{"exec_id", uint64_t{9}}});
  script_.Span("cc_running", kBase + 500, kBase + 600, 3, 2,
               {{"exec_id", uint64_t{9}}, {"op_id", uint64_t{1}}});
  Close(core);
  EXPECT_THAT(LinksOf(IdOf("name:nrt_execute")), HasSubstr("no kbl_exec_pre lies within the call"));
  EXPECT_THAT(LinksOf(IdOf("name:nc_exec_running")),
              HasSubstr("no kbl_exec_pre with exec_id 9 was found on its core before it"));
  EXPECT_THAT(LinksOf(IdOf("name:cc_running")),
              AllOf(HasSubstr("ids and times contradict each other"),
                    HasSubstr("no other rank has an event with its exec_id 9 and op_id 1")));
}

TEST_F(EventLinkerTest, SequenceLeadsToItsNeighbours) {
  const uint32_t core = AddCore(3, 7);
  for (uint64_t i = 0; i < 3; ++i) {
    script_.Start("step", kBase + i * 100, i + 1, 7, {}, i, 77);
    script_.Stop("step", kBase + i * 100 + 50, i + 1, 7);
  }
  Close(core);
  EventCollector collector({.from_ns = kBase + 100, .to_ns = kBase + 101});
  ViewFixture::Read(collector, kBase + 100, kBase + 101);
  const std::string events = collector.Json(true, 0);
  EXPECT_THAT(events, HasSubstr("\"sequence_id\":\"77\""));
  const size_t begin = events.find("\"id\":\"") + 6;
  const std::string links = LinksOf(events.substr(begin, events.find('"', begin) - begin));
  EXPECT_THAT(links, AllOf(HasSubstr(R"("kind":"nrta_seq_id","direction":"upstream")"),
                           HasSubstr(R"("kind":"nrta_seq_id","direction":"downstream")")));
}

TEST_F(EventLinkerTest, RefusesWhatIsNoIdAndDoesNotInventEvents) {
  AddExecution(AddCore(3, 7), kBase + 1'000, 5, kBase + 1'500);
  for (const char* text :
       {"", "4", "4-5", "4-5-6-7", "a-b-c", "4-5-", "-1-2-3", "4-5-99999999999"}) {
    EXPECT_EQ(EventId::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_EQ(Links("9-1-1", {}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Links(fmt::format("0-{}-1", kBase + 1'000), {}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(EventLinkerTest, LayoutHasTheMomentsOfTheCapture) {
  CaptureRecord record;
  record.state = CaptureState::kComplete;
  record.spec.cause = "slow step";
  record.started_realtime_ns = kBase - 10;
  record.stopped_realtime_ns = kBase + 10;
  const std::string json = CaptureLayout::Make(record, *source_.Describe(), CaptureClocks()).Json();
  EXPECT_THAT(json, HasSubstr(R"("markers":[{"kind":"started","ns":"1749999999999999990",)"
                              R"("detail":"slow step"},{"kind":"stopped",)"));
}

// A link has to find its event again whatever window is read.
TEST_F(EventLinkerTest, IdsDoNotDependOnTheWindow) {
  AddExecution(AddCore(3, 7), kBase + 1'000, 5, kBase + 1'500);
  const std::string id = IdOf("name:cc_running");
  const auto parsed = EventId::Parse(id);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->ToString(), id);
  EventCollector collector({.from_ns = kBase + 1'600, .to_ns = kBase + 1'601});
  ViewFixture::Read(collector, kBase + 1'600, kBase + 1'601);
  EXPECT_THAT(collector.Json(true, 0), HasSubstr("\"id\":\"" + id + "\""));
}

}  // namespace
}  // namespace neurontrace
