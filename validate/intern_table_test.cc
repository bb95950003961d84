// SPDX-License-Identifier: Apache-2.0
// Goal: texts are found under their numbers whatever the order in which these come, are counted
// once, and buy little room. Method: the table alone.
#include "validate/intern_table.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(InternTableTest, OneTextBuysFewPlaces) {
  for (const uint64_t iid : {1u, 16u, 17u, 200u, 1'000'000u}) {
    InternTable table;
    bool is_new = false;
    ASSERT_TRUE(table.Add(iid, "text", is_new));
    EXPECT_TRUE(is_new);
    EXPECT_LE(table.places(), 17u) << iid;
    ASSERT_NE(table.Find(iid), nullptr);
    EXPECT_EQ(table.Find(iid)->beginning, "text");
    EXPECT_EQ(table.Find(iid - 1), nullptr);
    EXPECT_EQ(table.Find(iid + 1), nullptr);
  }
}

// Number 30 comes while it stands apart; once the numbers from 1 on reach it, it is still the same.
TEST(InternTableTest, ANumberThatStoodApartIsReached) {
  InternTable table;
  bool is_new = false;
  ASSERT_TRUE(table.Add(30, "thirty", is_new));
  ASSERT_TRUE(table.Add(90, "ninety", is_new));
  for (uint64_t iid = 1; iid <= 60; ++iid) {
    if (iid == 30) continue;
    ASSERT_TRUE(table.Add(iid, "another", is_new));
    EXPECT_TRUE(is_new);
    ASSERT_NE(table.Find(30), nullptr) << iid;
    EXPECT_EQ(table.Find(30)->beginning, "thirty");
  }
  EXPECT_EQ(table.size(), 61u);
  EXPECT_TRUE(table.Add(30, "thirty", is_new));
  EXPECT_FALSE(is_new);
  EXPECT_FALSE(table.Add(30, "another", is_new)) << "a conflict is seen";
  EXPECT_FALSE(is_new);
  EXPECT_FALSE(table.Add(90, "another", is_new));
  EXPECT_EQ(table.size(), 61u);
}

}  // namespace
}  // namespace neurontrace
