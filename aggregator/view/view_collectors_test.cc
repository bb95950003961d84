// SPDX-License-Identifier: Apache-2.0
// The lists and sums of a window: events, search, summary, and the map of busy ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "aggregator/view/busy_map.h"
#include "aggregator/view/event_collector.h"
#include "aggregator/view/name_summary.h"
#include "aggregator/view/view_test_support.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ViewCollectorsTest : public ViewFixture {
 protected:
  std::string List(EventCollector::Options options) {
    options.from_ns = kBase;
    options.to_ns = kBase + 10'000;
    EventCollector collector(std::move(options));
    Read(collector, kBase, kBase + 10'000);
    return collector.Json(true, 0);
  }
  static EventQuery Query(std::string_view text) {
    auto query = EventQuery::Parse(text);
    EXPECT_TRUE(query.ok()) << query.status();
    return *std::move(query);
  }
};

TEST_F(ViewCollectorsTest, ListsEventsWithTheirArguments) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("nc_exec_running", kBase + 100, kBase + 900, 1, 7,
               {{"note", std::string("<b>\"hostile\"</b>")}}, {{"result", uint64_t{1} << 60}});
  Close(core);
  const std::string json = List({});
  EXPECT_THAT(json, HasSubstr("\"name\":\"nc_exec_running\""));
  EXPECT_THAT(json, HasSubstr("\"start_ns\":\"1750000000000000100\""));
  EXPECT_THAT(json, HasSubstr("\"duration_ns\":\"800\""));
  EXPECT_THAT(json, HasSubstr(R"("note":"<b>\"hostile\"</b>")"));
  // Beyond what a double holds, so a text.
  EXPECT_THAT(json, HasSubstr("\"result\":\"1152921504606846976\""));
  EXPECT_THAT(json, HasSubstr("\"next\":\"\""));
}

TEST_F(ViewCollectorsTest, EventsHaveLevelBoundAndId) {
  const uint32_t core = AddCore(3, 7);
  script_.Start("outer", kBase + 100, 1, 7);
  script_.Span("inner", kBase + 200, kBase + 300, 2, 7);
  script_.Stop("outer", kBase + 900, 1, 7);
  Close(core);
  const std::string inner = List({.query = Query("name:inner")});
  EXPECT_THAT(inner, HasSubstr(R"("depth":1,"bound_known":false,"bound_ns":"0")"));
  EXPECT_THAT(inner, Not(HasSubstr("sequence_id")));
  EXPECT_THAT(inner, HasSubstr("\"id\":\"" + std::to_string(core) + "-1750000000000000200-"));
  EXPECT_THAT(List({.query = Query("name:outer")}), HasSubstr("\"depth\":0"));
}

// A preparation from before the window names the model of an execution in it.
TEST_F(ViewCollectorsTest, ArgumentsNameTheModelOfAnEarlierPreparation) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("kbl_exec_pre", kBase - 500, kBase - 400, 1, 7,
               {{"exec_id", uint64_t{5}}, {"model_name", std::string("llama")}});
  script_.Span("nc_exec_running", kBase + 100, kBase + 900, 2, 0, {{"exec_id", uint64_t{5}}});
  Close(core);
  EXPECT_THAT(List({.query = Query("name:nc_exec_running")}), HasSubstr("llama"));
}

TEST_F(ViewCollectorsTest, ArgumentsOfAStopInALaterChunkFollow) {
  const uint32_t core = AddCore(3, 7);
  script_.Start("nc_exec_running", kBase + 100, 1, 7, {{"a", uint64_t{1}}});
  Close(core);
  script_.Stop("nc_exec_running", kBase + 900, 1, 7, {{"b", uint64_t{2}}});
  Close(core);
  EXPECT_THAT(List({}), HasSubstr("\"a\":1,\"b\":2"));
}

TEST_F(ViewCollectorsTest, ContinuesAtTheCursor) {
  const uint32_t core = AddCore(3, 7);
  for (uint64_t i = 0; i < 5; ++i) script_.Instant("mark", kBase + i, i);
  Close(core);
  const std::string first = List({.limit = 2});
  EXPECT_THAT(first, HasSubstr("\"next\":\"2\""));
  const std::string last = List({.skip = 4, .limit = 2});
  EXPECT_THAT(last, HasSubstr("\"start_ns\":\"1750000000000000004\""));
  EXPECT_THAT(last, Not(HasSubstr("000003\"")));
  EXPECT_THAT(last, HasSubstr("\"next\":\"\""));
}

TEST_F(ViewCollectorsTest, SearchCountsBeyondItsLimit) {
  const uint32_t core = AddCore(3, 7);
  for (uint64_t i = 0; i < 5; ++i) script_.Instant("mark", kBase + i * 2'000, i);
  script_.Instant("other", kBase + 1, 9);
  Close(core);
  const std::string json =
      List({.limit = 1, .query = Query("mark rank:7"), .is_search = true, .bins = 5});
  EXPECT_THAT(json, HasSubstr("\"total\":\"5\",\"ranks\":1,\"density\":[1,1,1,1,1]"));
  EXPECT_THAT(json, HasSubstr("\"next\":\"1\""));
}

TEST_F(ViewCollectorsTest, SumsUpByNameWithOwnTimes) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("outer", kBase + 100, kBase + 1'100, 1);
  script_.Span("inner", kBase + 200, kBase + 500, 2);
  Close(core);
  NameSummary summary(NameSummary::By::kName, {.from_ns = kBase, .to_ns = kBase + 2'000});
  Read(summary, kBase, kBase + 2'000);
  const std::string json = summary.Json(true);
  EXPECT_THAT(json, HasSubstr(R"({"name":"outer","count":"1","total_ns":"1000","self_ns":"700")"));
  EXPECT_THAT(json, HasSubstr(R"({"name":"inner","count":"1","total_ns":"300","self_ns":"300")"));
  EXPECT_LT(json.find("outer"), json.find("inner"));
}

TEST_F(ViewCollectorsTest, MapsBusySharesOfColumns) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("nc_exec_running", kBase, kBase + 150, 1);
  script_.Span("nc_exec_running", kBase + 350, kBase + 400, 2);
  Close(core);
  BusyMap map(BusyMap::Metric::kBusy, {.from_ns = kBase, .to_ns = kBase + 400, .columns = 4});
  Read(map, kBase, kBase + 400);
  const std::string bytes = map.Take();
  std::vector<float> values(4);
  ASSERT_GT(bytes.size(), 16u);
  std::memcpy(values.data(), bytes.data() + bytes.size() - 16, 16);
  EXPECT_THAT(values, ElementsAre(1.0f, 0.5f, 0.0f, 0.5f));
}

TEST_F(ViewCollectorsTest, MapsTimeInCollectivesAndBarriers) {
  const uint32_t core = AddCore(3, 7);
  script_.Span("nc_exec_running", kBase, kBase + 400, 1);
  script_.Span("enc_barrier", kBase + 100, kBase + 150, 2);
  Close(core);
  BusyMap map(BusyMap::Metric::kWait, {.from_ns = kBase, .to_ns = kBase + 400, .columns = 4});
  Read(map, kBase, kBase + 400);
  const std::string bytes = map.Take();
  std::vector<float> values(4);
  ASSERT_GT(bytes.size(), 16u);
  std::memcpy(values.data(), bytes.data() + bytes.size() - 16, 16);
  EXPECT_THAT(values, ElementsAre(0.0f, 0.5f, 0.0f, 0.0f));
}

}  // namespace
}  // namespace neurontrace
