// SPDX-License-Identifier: Apache-2.0
#include "wire/grpc_set_up.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neurontrace {
namespace {

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}

TEST(GrpcSetUpTest, PassesAFewLinesASecondAndCountsTheRest) {
  gpr_log_verbosity_init();  // as gRPC does when it begins
  SetUpGrpc([](std::string_view line) { Lines().emplace_back(line); });
  for (int i = 0; i < 1000; ++i) gpr_log("a/file.cc", 7, GPR_LOG_SEVERITY_ERROR, "bad %d", i);
  SetUpGrpc(nullptr);
  gpr_log("a/file.cc", 7, GPR_LOG_SEVERITY_ERROR, "unheard");
  ASSERT_FALSE(Lines().empty());
  EXPECT_EQ(Lines().front(), "gRPC: bad 0 (file.cc:7)");
  // The thousand take less than a second, or begin another one or two.
  EXPECT_LE(Lines().size(), 44u);
  EXPECT_THAT(Lines(), testing::Not(testing::Contains(testing::HasSubstr("unheard"))));
}

}  // namespace
}  // namespace neurontrace
