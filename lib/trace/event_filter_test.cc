// SPDX-License-Identifier: Apache-2.0
// The vendor's grammar for event types and cores, with its documented examples and its slips.
#include "lib/trace/event_filter.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

struct Case {
  std::vector<std::string> items;
  std::vector<std::string> selected;
  std::vector<std::string> left_out;
};

TEST(EventFilter, FollowsTheVendorsGrammar) {
  const std::vector<Case> cases = {
      {{}, {"nrt_execute", "cc_running", "anything at all"}, {}},
      {{"hardware"}, {"nc_exec_running", "nc_model_switch", "nrt_model_switch"}, {"nrt_execute"}},
      {{"software"}, {"nrt_execute", "some_future_event"}, {"hw_notify"}},
      {{"hardware", "^cc_running"}, {"nc_exec_running"}, {"cc_running", "nrt_execute"}},
      {{"hardware", "nrt_tensor_write"}, {"cc_running", "nrt_tensor_write"}, {"nrt_tensor_read"}},
      {{"^nrt_tensor_free"}, {"nrt_execute"}, {"nrt_tensor_free"}},
      {{"^hardware"}, {"nrt_execute"}, {"cc_running"}},
      {{"nrt_tensor_*"}, {"nrt_tensor_read", "nrt_tensor_free", "tensor_read"}, {"nrt_execute"}},
      {{"tensor_*"}, {"tensor_read"}, {"nrt_tensor_read"}},
      {{"^nrt_dma_*"}, {"nrt_execute"}, {"nrt_dma_mem_alloc", "nrt_dma_"}},
      {{"hardware", "^cc_*"}, {"nc_exec_running"}, {"cc_running", "cc_exec_barrier", "nrt_load"}},
      {{"*"}, {"nrt_execute", ""}, {}},
      {{"^*"}, {}, {"nrt_execute"}},
  };
  for (const Case& c : cases) {
    const auto filter = EventFilter::Parse(c.items);
    ASSERT_TRUE(filter.ok()) << filter.status();
    for (const auto& type : c.selected) EXPECT_TRUE(filter->Selects(type)) << type;
    for (const auto& type : c.left_out) EXPECT_FALSE(filter->Selects(type)) << type;
  }
}

TEST(EventFilter, UnderstandsDocumentedAndOlderNames) {
  const auto filter = EventFilter::Parse({"hardware", "^cc_exec"});
  ASSERT_TRUE(filter.ok());
  EXPECT_FALSE(filter->Selects("cc_running"));
  EXPECT_TRUE(EventFilter::Parse({"device_exec"})->Selects("nc_exec_running"));
  // Either side may be old.
  EXPECT_TRUE(EventFilter::Parse({"dlr_infer"})->Selects("dlr_infer"));
  EXPECT_TRUE(EventFilter::Parse({"kmgr_exec_core"})->Selects("dlr_infer"));
  EXPECT_TRUE(EventFilter::Parse({"hardware"})->Selects("device_exec"));
  EXPECT_FALSE(EventFilter::Parse({"^nrt_tensor_read"})->Selects("tensor_read"));
}

TEST(EventFilter, RefusesSlipsByName) {
  EXPECT_EQ(EventFilter::Parse({"^"}).status().message(),
            "event type filter '^': a name is missing");
  EXPECT_FALSE(EventFilter::Parse({""}).ok());
  EXPECT_FALSE(EventFilter::Parse({"^^a"}).ok());
  EXPECT_FALSE(EventFilter::Parse({"a,b"}).ok());
  EXPECT_FALSE(EventFilter::Parse({"a\nb"}).ok());
  EXPECT_FALSE(EventFilter::Parse({"a\x7f"}).ok());
  EXPECT_FALSE(EventFilter::Parse({std::string(1000, 'a')}).ok());
  EXPECT_EQ(EventFilter::Parse({"nrt_*_read"}).status().message(),
            "event type filter 'nrt_*_read': a * can only end a name");
  EXPECT_FALSE(EventFilter::Parse({"a**"}).ok());
}

TEST(EventFilter, LeavesAllocationsOutByDefault) {
  const auto filter =
      EventFilter::Parse({kDefaultEventTypeItems.begin(), kDefaultEventTypeItems.end()});
  ASSERT_TRUE(filter.ok()) << filter.status();
  EXPECT_FALSE(filter->Selects("nrt_tensor_free"));
  EXPECT_FALSE(filter->Selects("nrt_dma_mem_dealloc"));
  EXPECT_TRUE(filter->Selects("nrt_tensor_read"));
  EXPECT_TRUE(filter->Selects("some_future_event"));
}

using Unknown = std::vector<UnknownEventType>;
const std::vector<std::string> kKnown = {"cc_running",  "kmgr_exec_core",  "nc_exec_running",
                                         "nrt_execute", "nrt_tensor_read", "nrt_tensor_write"};

TEST(UnknownEventTypes, NamesTheNearest) {
  const std::vector<std::string> items = {"nrt_exceute", "^cc_runing", "nrt_tensr_*", "hardwear"};
  EXPECT_EQ(UnknownEventTypes(items, kKnown), (Unknown{{"nrt_exceute", "nrt_execute"},
                                                       {"^cc_runing", "cc_running"},
                                                       {"nrt_tensr_*", "nrt_tensor_read"},
                                                       {"hardwear", "hardware"}}));
}

TEST(UnknownEventTypes, KnowsGroupsAliasesAndBeginnings) {
  const std::vector<std::string> items = {"hardware",     "^software", "cc_exec", "tensor_read",
                                          "nrt_tensor_*", "*",         "^cc_*",   "device_exec"};
  EXPECT_EQ(UnknownEventTypes(items, kKnown), Unknown());
  // An older runtime's list.
  const std::vector<std::string> older = {"dlr_infer"};
  EXPECT_EQ(UnknownEventTypes(std::vector<std::string>{"kmgr_exec_core"}, older), Unknown());
}

TEST(UnknownEventTypes, SuggestsNothingWithoutCandidates) {
  const std::vector<std::string> slip = {"nrt_exceute"};
  EXPECT_EQ(UnknownEventTypes(slip, {}), Unknown());
  EXPECT_EQ(UnknownEventTypes({}, kKnown), Unknown());
  EXPECT_EQ(UnknownEventTypes(std::vector<std::string>{"", "^", "a,b", "a*b"}, kKnown), Unknown());
}

TEST(UnknownEventTypes, HasLimits) {
  const std::vector<std::string> many(1'000, std::string(512, 'x'));
  const std::vector<std::string> known = {std::string(70'000, 'y'), "xy"};
  const Unknown unknown = UnknownEventTypes(many, known);
  ASSERT_EQ(unknown.size(), kUnknownEventTypesMax);
  EXPECT_EQ(unknown[0].nearest, "xy");
}

TEST(ParseCoreList, TakesNumbersAndRanges) {
  EXPECT_EQ(*ParseCoreList("0"), (std::vector<uint32_t>{0}));
  EXPECT_EQ(*ParseCoreList("0,2,4"), (std::vector<uint32_t>{0, 2, 4}));
  EXPECT_EQ(*ParseCoreList("5,0-3,2-4"), (std::vector<uint32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(ParseCoreList, RefusesTheRest) {
  for (const char* text : {"", ",", "1,", "a", "3-1", "1-", "-1", "256", "0-4294967295", "1 2"}) {
    EXPECT_FALSE(ParseCoreList(text).ok()) << text;
  }
}

}  // namespace
}  // namespace neurontrace
