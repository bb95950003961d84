// SPDX-License-Identifier: Apache-2.0
// Goal: gid is a rank until that is contradicted, and then the number of a group; two cores that
// meet alone have one group. Method: ids by hand.
#include "aggregator/insight/group_ids.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(GroupIdsTest, TakesAGidForARankUntilThatIsContradicted) {
  GroupIds ranks;
  EXPECT_EQ(ranks.Of({.core = 0, .worker_gid = 0, .gid = 0}), 0u);
  EXPECT_EQ(ranks.Of({.core = 1, .worker_gid = 1, .gid = 1}), 0u);
  GroupIds groups;
  EXPECT_EQ(groups.Of({.core = 0, .gid = 5}), 0u);
  const uint64_t group = groups.Of({.core = 1, .gid = 5});  // two cores with one number
  EXPECT_NE(group, 0u);
  EXPECT_EQ(groups.Of({.core = 0, .gid = 5}), group);
  EXPECT_NE(groups.Of({.core = 2, .gid = 6}), group);
  EXPECT_NE(groups.Of({.core = 1, .gid = 5, .stream_id = 1}), group);
}

TEST(GroupIdsTest, DistinguishesStreamsOfCollectives) {
  GroupIds ids;
  const uint64_t third = ids.Of({.core = 0, .worker_gid = 0, .gid = 0, .stream_id = 3});
  EXPECT_NE(third, ids.Of({.core = 0, .worker_gid = 0, .gid = 0, .stream_id = 4}));
  EXPECT_EQ(third, ids.Of({.core = 1, .worker_gid = 1, .gid = 1, .stream_id = 3}));
  EXPECT_NE(third, 0u);
}

TEST(GroupIdsTest, APairIsOneGroup) {
  GroupIds ids;
  const uint64_t pair = ids.Of({.core = 0, .worker_gid = 7, .peer = 9});
  EXPECT_EQ(pair, ids.Of({.core = 1, .worker_gid = 9, .peer = 7}));
  EXPECT_NE(pair, ids.Of({.core = 1, .worker_gid = 9, .peer = 8}));
  EXPECT_NE(pair, 0u);
}

}  // namespace
}  // namespace neurontrace
