// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/loss_table.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace neurontrace {
namespace {

std::map<std::string, uint64_t> RowsOf(const LossTable& table, LossPlace last) {
  std::map<std::string, uint64_t> rows;
  table.ForEach(last, [&](LossPlace place, LossReason reason, uint64_t events) {
    rows[std::string(ToString(place)) + ": " + std::string(ToString(reason))] = events;
  });
  return rows;
}

TEST(LossTable, UsualOnesAreThereFromTheStart) {
  const auto agent = RowsOf({}, LossPlace::kWireRefusal);
  EXPECT_EQ(agent.size(), 15u);
  EXPECT_EQ(agent.at("runtime ring: overwritten"), 0u);
  EXPECT_FALSE(agent.contains("store: unknown"));
  EXPECT_EQ(RowsOf({}, LossPlace::kRetention).size(), 17u);
}

TEST(LossTable, SumsAndShowsTheUnusualOnceItIsThere) {
  LossTable table;
  table.Add({.place = LossPlace::kSpool, .reason = LossReason::kOverwritten, .events = 3});
  table.Add({.place = LossPlace::kSpool, .reason = LossReason::kOverwritten, .events = 4});
  table.Add(LossPlace::kStore, LossReason::kLimit, 5);
  LossTable all;
  all.Add(LossPlace::kSpool, LossReason::kOverwritten, 10);
  all.Add(table);
  const auto rows = RowsOf(all, LossPlace::kWireRefusal);
  EXPECT_EQ(rows.size(), 16u);
  EXPECT_EQ(rows.at("spool: overwritten"), 17u);
  EXPECT_EQ(rows.at("store: limit"), 5u);
}

TEST(LossTable, GrowthExcludesExpiry) {
  const std::vector<Loss> before = {
      {.place = LossPlace::kTapBuffer, .reason = LossReason::kFull, .events = 5}};
  const std::vector<Loss> after = {
      {.place = LossPlace::kTapBuffer, .reason = LossReason::kFull, .events = 7},
      {.place = LossPlace::kStore, .reason = LossReason::kUnknown, .events = 2},
      {.place = LossPlace::kRetention, .reason = LossReason::kExpired, .events = 100},
      {.place = LossPlace::kDecode, .reason = LossReason::kMalformed, .events_unknown = true}};
  LossTable table;
  table.AddGrowth(before, after);
  table.AddGrowth(after, after);
  EXPECT_EQ(table.events(LossPlace::kTapBuffer, LossReason::kFull), 2u);
  EXPECT_EQ(table.events(LossPlace::kStore, LossReason::kUnknown), 2u);
  EXPECT_EQ(table.events(LossPlace::kRetention, LossReason::kExpired), 0u);
  EXPECT_EQ(table.events(LossPlace::kDecode, LossReason::kMalformed), 0u);
}

TEST(LossTable, HostileValuesNeitherWrapNorReachBeyondIt) {
  LossTable table;
  table.Add(LossPlace::kStore, LossReason::kUnknown, UINT64_MAX);
  table.Add(LossPlace::kStore, LossReason::kUnknown, 2);
  table.Add(static_cast<LossPlace>(200), static_cast<LossReason>(99), 1);
  EXPECT_EQ(table.events(LossPlace::kStore, LossReason::kUnknown), UINT64_MAX);
  EXPECT_EQ(table.events(LossPlace::kUnspecified, LossReason::kUnknown), 1u);
}

}  // namespace
}  // namespace neurontrace
