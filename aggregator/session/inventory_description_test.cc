// SPDX-License-Identifier: Apache-2.0
#include "aggregator/session/inventory_description.h"

#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

TEST(NearestName, CountsEdits) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  EXPECT_EQ(EditDistance("cc_runnign", "cc_running"), 1u);  // two exchanged
}

TEST(NearestName, FindsNearestNameOnly) {
  const std::vector<std::string> names = {"cc_running", "nc_exec_running", "nrt_tensor_read"};
  EXPECT_EQ(NearestName("cc_runing", names), "cc_running");
  EXPECT_EQ(NearestName("nrt_tensor_raed", names), "nrt_tensor_read");
  EXPECT_EQ(NearestName("tensor", names), "nrt_tensor_read");
  EXPECT_EQ(NearestName("zebra", names), "");
  EXPECT_EQ(NearestName("x", {}), "");
  const std::vector<std::string> long_names = {std::string(500, 'a'), std::string(65, 'a')};
  EXPECT_EQ(NearestName(std::string(65, 'a'), long_names), "") << "takes too long to compare";
  EXPECT_EQ(NearestName(std::string(63, 'a'), long_names), long_names[0]) << "a prefix of the name";
}

}  // namespace
}  // namespace neurontrace
