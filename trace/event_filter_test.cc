// SPDX-License-Identifier: Apache-2.0
// The vendor's grammar for event types and cores, with its documented examples and its slips.
#include "trace/event_filter.h"

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
  EXPECT_FALSE(EventFilter::Parse({std::string(1000, 'a')}).ok());
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
