// SPDX-License-Identifier: Apache-2.0
// The vendor's grouping options: which fields each takes, their defaults, and the labels that
// result.
#include "aggregator/export/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kThread = 7;

TimelineStream Core() {
  TimelineStream stream;
  stream.description.identity = {.agent_id = "agent",
                                 .worker = {"i-0f207fb2a99bd2d08", "boot", 1'113'579, 1, ""},
                                 .kind = StreamKind::kNeuronCore,
                                 .nc_idx = 3};
  stream.rank.label = "gid35";
  return stream;
}

std::string Process(const std::vector<std::string>& primary) {
  return Grouping::Parse(primary, {})->ProcessLabel(Core(), kThread);
}
std::string Row(const std::vector<std::string>& secondary) {
  return Grouping::Parse({}, secondary)->RowLabel(Core(), kThread);
}

TEST(GroupingTest, DefaultsToVendorGrouping) {
  EXPECT_EQ(Process({}), "i-0f207fb2a99bd2d08-pid1113579");
  EXPECT_EQ(Row({}), "gid35-nc3-tid7");
}

TEST(GroupingTest, EveryAllowedFieldNamesItsPart) {
  EXPECT_EQ(Process({"instance_id"}), "i-0f207fb2a99bd2d08");
  EXPECT_EQ(Process({"process_id"}), "pid1113579");
  EXPECT_EQ(Process({"lnc_idx"}), "nc3");
  EXPECT_EQ(Process({"thread_id"}), "tid7");
  EXPECT_EQ(Row({"instance_id"}), "i-0f207fb2a99bd2d08");
  EXPECT_EQ(Row({"process_id"}), "pid1113579");
  EXPECT_EQ(Row({"worker_gid"}), "gid35");
  EXPECT_EQ(Row({"lnc_idx"}), "nc3");
  EXPECT_EQ(Row({"thread_id"}), "tid7");
}

TEST(GroupingTest, PartsStandInTheOrderInWhichTheyAreNamedAndOnce) {
  EXPECT_EQ(Process({"lnc_idx", "instance_id", "lnc_idx"}), "nc3-i-0f207fb2a99bd2d08");
  EXPECT_EQ(Row({"thread_id", "worker_gid"}), "tid7-gid35");
}

TEST(GroupingTest, OmitsUnknownParts) {
  TimelineStream stream = Core();
  stream.rank.label.clear();
  EXPECT_EQ(Grouping::Parse({}, {})->RowLabel(stream, kThread), "nc3-tid7");
}

TEST(GroupingTest, OtherFieldsAreRefusedWithTheAllowedOnes) {
  const auto primary = Grouping::Parse({"worker_gid"}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(primary.status()));
  EXPECT_THAT(std::string(primary.status().message()),
              HasSubstr("primary group: unknown key 'worker_gid'; the keys are instance_id, "
                        "process_id, lnc_idx, thread_id"));
  const auto secondary = Grouping::Parse({}, {"core"});
  EXPECT_TRUE(absl::IsInvalidArgument(secondary.status()));
  EXPECT_THAT(std::string(secondary.status().message()),
              HasSubstr("secondary group: unknown key 'core'; the keys are instance_id, "
                        "process_id, worker_gid, lnc_idx, thread_id"));
}

}  // namespace
}  // namespace neurontrace
