// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kUpload[] = "/neurontrace.v1.AgentGateway/Upload";
constexpr char kList[] = "/neurontrace.v1.OperatorService/ListCaptures";
constexpr char kStart[] = "/neurontrace.v1.OperatorService/StartCapture";
constexpr char kUpdate[] = "/neurontrace.v1.OperatorService/UpdateCapture";
constexpr char kDelete[] = "/neurontrace.v1.OperatorService/DeleteCapture";

std::string Refusal(Role role, std::string_view path) {
  return std::string(CheckCall({.name = "x", .role = role}, path).message());
}

TEST(RoleTest, RoleNamesRoundTrip) {
  for (const Role role : {Role::kAgent, Role::kViewer, Role::kOperator, Role::kAdmin}) {
    EXPECT_EQ(RoleOf(ToString(role)), role);
  }
  EXPECT_EQ(RoleOf("root"), std::nullopt);
  EXPECT_EQ(RoleOf(""), std::nullopt);
}

TEST(RoleTest, RolesIncludeLowerRoles) {
  EXPECT_EQ(Refusal(Role::kViewer, kList), "");
  EXPECT_EQ(Refusal(Role::kViewer, kStart),
            "'x' has the role viewer; StartCapture needs operator or higher");
  EXPECT_EQ(Refusal(Role::kOperator, kStart), "");
  EXPECT_EQ(Refusal(Role::kViewer, kUpdate),
            "'x' has the role viewer; UpdateCapture needs operator or higher");
  EXPECT_EQ(Refusal(Role::kOperator, kUpdate), "");
  EXPECT_EQ(Refusal(Role::kOperator, kDelete),
            "'x' has the role operator; DeleteCapture needs admin");
  EXPECT_EQ(Refusal(Role::kAdmin, kDelete), "");
}

TEST(RoleTest, ViewersReadWhatThePageShows) {
  for (const char* const call :
       {"GetView", "Explain", "ListArtifacts", "GetArtifact", "ListStandingExports"}) {
    const std::string path = std::string("/neurontrace.v1.OperatorService/") + call;
    EXPECT_EQ(Refusal(Role::kViewer, path), "");
    EXPECT_NE(Refusal(Role::kAgent, path), "");
  }
}

TEST(RoleTest, AgentRoleIsSeparate) {
  EXPECT_EQ(Refusal(Role::kAgent, kUpload), "");
  EXPECT_EQ(Refusal(Role::kAdmin, kUpload), "'x' has the role admin; Upload needs agent");
  EXPECT_NE(Refusal(Role::kAgent, kList), "");
  EXPECT_NE(Refusal(Role::kAgent, kDelete), "");
}

TEST(RoleTest, UnknownCallsRequireAdmin) {
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

TEST(RoleTest, CallerWithJobsCanUseNoOthers) {
  const Caller alice{.name = "alice", .role = Role::kOperator, .jobs = {"a-*", "b"}};
  EXPECT_TRUE(CheckOwner(alice, {.selection = {.job = "a-1"}}).ok());
  EXPECT_TRUE(CheckOwner(alice, {.selection = {.job = "b"}}).ok());
  EXPECT_EQ(CheckOwner(alice, {.selection = {.job = "c"}}).message(),
            "alice may only capture jobs a-*, b, but this capture is of c");
  EXPECT_THAT(std::string(CheckOwner(alice, {}).message()), HasSubstr("choose one with --job"));
  EXPECT_TRUE(absl::IsPermissionDenied(CheckOwner(alice, {})));
  EXPECT_TRUE(CheckOwner({.name = "root"}, {}).ok());
}

TEST(RoleTest, CallerWithNamespacesMustSelectOne) {
  const Caller bob{.name = "bob",
                   .role = Role::kOperator,
                   .namespaces = {"team-b*", "shared"},
                   .uids = {"1000", "1001"}};
  CaptureSpec spec;
  EXPECT_EQ(CheckOwner(bob, spec).message(),
            "bob may only capture namespaces team-b*, shared; choose one with --job "
            "namespace=VALUE");
  spec.selection.job_facts = {{"namespace", "team-b2"}};
  EXPECT_THAT(std::string(CheckOwner(bob, spec).message()), HasSubstr("--job uid=VALUE"));
  spec.selection.job_facts.push_back({"uid", "1001"});
  EXPECT_TRUE(CheckOwner(bob, spec).ok());
  spec.selection.job_facts[1].value = "100";
  EXPECT_EQ(CheckOwner(bob, spec).message(),
            "bob may only capture users 1000, 1001, but this capture is of 100");
  spec.selection.job_facts = {{"label:namespace", "team-b"}, {"label:uid", "1000"}};
  EXPECT_FALSE(CheckOwner(bob, spec).ok()) << "labels are whatever a worker says";
}

TEST(RoleTest, DefaultsToOnlyNamespace) {
  const Caller bob{.name = "bob", .namespaces = {"team-b*"}, .uids = {"1000"}};
  EXPECT_THAT(WithOwner(bob, {}).selection.job_facts, ElementsAre(KeyValue{"uid", "1000"}));
  CaptureSpec named;
  named.selection.job_facts = {{"uid", "0"}};
  EXPECT_EQ(WithOwner(bob, named).selection.job_facts, named.selection.job_facts)
      << "the fact is kept and the call refused";
  EXPECT_EQ(WithOwner({.name = "root"}, {}), CaptureSpec());
}

}  // namespace
}  // namespace neurontrace
