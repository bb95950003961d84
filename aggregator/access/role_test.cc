// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr char kUpload[] = "/neurontrace.v1.AgentGateway/Upload";
constexpr char kList[] = "/neurontrace.v1.OperatorService/ListCaptures";
constexpr char kStart[] = "/neurontrace.v1.OperatorService/StartCapture";
constexpr char kDelete[] = "/neurontrace.v1.OperatorService/DeleteCapture";

std::string Refusal(Role role, std::string_view path) {
  return std::string(CheckCall({.name = "x", .role = role}, path).message());
}

TEST(RoleTest, WordsAndRolesAreTheSame) {
  for (const Role role : {Role::kAgent, Role::kViewer, Role::kOperator, Role::kAdmin}) {
    EXPECT_EQ(RoleOf(WordOf(role)), role);
  }
  EXPECT_EQ(RoleOf("root"), std::nullopt);
  EXPECT_EQ(RoleOf(""), std::nullopt);
}

TEST(RoleTest, EachMayDoWhatTheOneBeforeMay) {
  EXPECT_EQ(Refusal(Role::kViewer, kList), "");
  EXPECT_EQ(Refusal(Role::kViewer, kStart),
            "x is a viewer: StartCapture is for the role operator and those above it");
  EXPECT_EQ(Refusal(Role::kOperator, kStart), "");
  EXPECT_EQ(Refusal(Role::kOperator, kDelete),
            "x is an operator: DeleteCapture is for the role admin");
  EXPECT_EQ(Refusal(Role::kAdmin, kDelete), "");
}

TEST(RoleTest, AgentsAreApart) {
  EXPECT_EQ(Refusal(Role::kAgent, kUpload), "");
  EXPECT_EQ(Refusal(Role::kAdmin, kUpload), "x is an admin: Upload is for the role agent");
  EXPECT_NE(Refusal(Role::kAgent, kList), "");
  EXPECT_NE(Refusal(Role::kAgent, kDelete), "");
}

TEST(RoleTest, WhatNobodyKnowsIsForAdmins) {
  EXPECT_NE(Refusal(Role::kOperator, "/neurontrace.v1.OperatorService/Destroy"), "");
  EXPECT_NE(Refusal(Role::kOperator, ""), "");
  EXPECT_EQ(Refusal(Role::kAdmin, "/neurontrace.v1.OperatorService/Destroy"), "");
}

TEST(RoleTest, PatternsMatchWholeNamesOrBeginnings) {
  EXPECT_TRUE(MatchesPattern("llama", "llama"));
  EXPECT_FALSE(MatchesPattern("llama", "llama-2"));
  EXPECT_TRUE(MatchesPattern("llama*", "llama-2"));
  EXPECT_TRUE(MatchesPattern("*", ""));
  EXPECT_FALSE(MatchesPattern("llama*", "lla"));
}

TEST(RoleTest, WhoHasJobsMayUseNoOthers) {
  const Caller alice{.name = "alice", .role = Role::kOperator, .jobs = {"a-*", "b"}};
  EXPECT_TRUE(CheckJob(alice, "a-1").ok());
  EXPECT_TRUE(CheckJob(alice, "b").ok());
  EXPECT_EQ(CheckJob(alice, "c").message(),
            "alice has captures of the jobs a-*, b alone, and this one is of c");
  EXPECT_THAT(std::string(CheckJob(alice, "").message()), HasSubstr("name one of them with --job"));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckJob(alice, "")));
  EXPECT_TRUE(CheckJob({.name = "root"}, "").ok());
}

}  // namespace
}  // namespace neurontrace
