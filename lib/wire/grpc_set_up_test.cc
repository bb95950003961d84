// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/grpc_set_up.h"

#include <gmock/gmock.h>
#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "neurontrace/v1/agent_gateway.pb.h"

namespace neurontrace {
namespace {

std::vector<std::string>& Lines() {
  static std::vector<std::string> lines;
  return lines;
}

class GrpcSetUpTest : public testing::Test {
 protected:
  GrpcSetUpTest() {
    Lines().clear();
    gpr_log_verbosity_init();  // as gRPC does when it begins
    SetUpGrpc([](std::string_view line) { Lines().emplace_back(line); });
  }
};

TEST_F(GrpcSetUpTest, PassesAFewLinesASecondAndCountsTheRest) {
  for (int i = 0; i < 1000; ++i) gpr_log("a/file.cc", 7, GPR_LOG_SEVERITY_ERROR, "bad %d", i);
  SetUpGrpc(nullptr);
  gpr_log("a/file.cc", 7, GPR_LOG_SEVERITY_ERROR, "unheard");
  ASSERT_FALSE(Lines().empty());
  EXPECT_EQ(Lines().front(), "gRPC: bad 0 (file.cc:7)");
  // The thousand take less than a second, or begin another one or two.
  EXPECT_LE(Lines().size(), 44u);
  EXPECT_THAT(Lines(), testing::Not(testing::Contains(testing::HasSubstr("unheard"))));
}

// Each such call of a stranger wrote a line to stderr, past the limit. Found by the fuzzers' logs.
TEST_F(GrpcSetUpTest, ACallThatIsNoTextIsNoWayAroundIt) {
  const std::string bytes("\x12\x01\xff");  // a text in field 2
  for (int i = 0; i < 1000; ++i) {
    v1::AgentHello hello;
    EXPECT_FALSE(hello.ParseFromString(bytes));
  }
  SetUpGrpc(nullptr);
  ASSERT_FALSE(Lines().empty());
  EXPECT_THAT(Lines().front(), testing::HasSubstr("AgentHello.agent_id"));
  EXPECT_LE(Lines().size(), 44u);
}

}  // namespace
}  // namespace neurontrace
