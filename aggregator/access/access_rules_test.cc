// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/sha256.h"
#include "trace/access_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] =
    "# who may do what\n"
    "[agents]\n"
    "certificate = dns:agent.neurontrace, uri:spiffe://cluster/agent/*\n"
    "role = agent\n"
    "\n"
    "[alice]\n"
    "certificate = \"cn:alice\"   ; of the training team\n"
    "role = operator\n"
    "jobs = team-a-*, shared\n";

AccessRules Parsed(const std::string& text) {
  auto rules = ParseAccessFile(text, "f");
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *rules : AccessRules();
}

std::string ProblemOf(const std::string& text) {
  return std::string(ParseAccessFile(text, "f").status().message());
}

TEST(AccessRulesTest, TheFirstRuleThatFitsCounts) {
  const AccessRules rules = Parsed(kGood);
  EXPECT_EQ(rules.ByCertificate({"cn:x", "dns:agent.neurontrace"})->role, Role::kAgent);
  EXPECT_EQ(rules.ByCertificate({"uri:spiffe://cluster/agent/7"})->name, "agents");
  const auto alice = rules.ByCertificate({"cn:alice"});
  ASSERT_TRUE(alice);
  EXPECT_EQ(*alice, (Caller{"alice", Role::kOperator, {"team-a-*", "shared"}, {}, {}}));
  EXPECT_EQ(rules.ByCertificate({"cn:alicia", "dns:alice"}), std::nullopt);
  EXPECT_EQ(rules.ByCertificate({}), std::nullopt);
}

TEST(AccessRulesTest, TokensAreKnownByTheirHashes) {
  const AccessRules rules =
      Parsed("[grafana]\nrole = viewer\ntoken-sha256 = " + Sha256HexOf("secret") + "\n");
  EXPECT_EQ(rules.ByToken("secret")->name, "grafana");
  EXPECT_EQ(rules.ByToken("Secret"), std::nullopt);
  EXPECT_EQ(rules.ByToken(""), std::nullopt);
  EXPECT_EQ(rules.ByToken(Sha256HexOf("secret")), std::nullopt) << "the hash is no token";
}

TEST(AccessRulesTest, CapturesMayBeOfNamespacesAndUsersAlone) {
  const AccessRules rules = Parsed(
      "[bob]\nrole = operator\ncertificate = cn:bob\njob-namespaces = team-b*, shared\n"
      "job-uids = 1000, 0\n");
  const auto bob = rules.ByCertificate({"cn:bob"});
  ASSERT_TRUE(bob);
  EXPECT_EQ(bob->namespaces, (std::vector<std::string>{"team-b*", "shared"}));
  EXPECT_EQ(bob->uids, (std::vector<std::string>{"1000", "0"}));
  for (const char* const bad : {"root", "-1", "007", "1000*", "12345678901"}) {
    EXPECT_THAT(ProblemOf(std::string("[a]\nrole = viewer\njob-uids = ") + bad + "\n"),
                HasSubstr("f:3: [a]: job-uids is the number of a user"));
  }
  EXPECT_THAT(ProblemOf("[a]\nrole = viewer\njob-namespaces = *\n"),
              HasSubstr("leave the key out"));
  EXPECT_THAT(ProblemOf("[a]\nrole = admin\ncertificate = cn:a\njob-uids = 1\n"),
              HasSubstr("f:1: [a]: jobs are for viewers and operators"));
}

TEST(AccessRulesTest, ServiceAccountsAreNamedWithTheirNamespace) {
  const AccessRules rules =
      Parsed("[jobs]\nrole = viewer\nservice-account = train/*, monitoring/grafana\n");
  EXPECT_EQ(rules.ByServiceAccount("train/job-7")->name, "jobs");
  EXPECT_EQ(rules.ByServiceAccount("monitoring/grafana")->name, "jobs");
  EXPECT_EQ(rules.ByServiceAccount("monitoring/grafana2"), std::nullopt);
  EXPECT_EQ(rules.ByServiceAccount("train2/job"), std::nullopt);
  EXPECT_TRUE(rules.has_service_accounts());
  EXPECT_FALSE(Parsed(kGood).has_service_accounts());
  for (const char* const bad : {"grafana", "*", "train*", "/x", "a/", "a/b/c"}) {
    EXPECT_THAT(ProblemOf(std::string("[a]\nrole = viewer\nservice-account = ") + bad + "\n"),
                HasSubstr("f:3: [a]: service-account is NAMESPACE/NAME"));
  }
}

TEST(AccessRulesTest, WithoutAFileTheRoleStandsInTheCertificate) {
  const AccessRules none;
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:operator", "dns:d", "cn:bob"}),
            (Caller{"bob", Role::kOperator, {}, {}, {}}));
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:agent"})->name, "agent");
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:root", "cn:neurontrace:admin"}), std::nullopt);
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:admin", "uri:neurontrace:viewer"})->role,
            Role::kViewer)
      << "of two roles the lesser";
  EXPECT_EQ(none.ByToken("x"), std::nullopt);
}

TEST(AccessRulesTest, WithAFileARoleInACertificateIsNothing) {
  EXPECT_EQ(Parsed(kGood).ByCertificate({"uri:neurontrace:admin"}), std::nullopt);
  EXPECT_EQ(Parsed("").ByCertificate({"uri:neurontrace:admin"}), std::nullopt);
}

TEST(AccessRulesTest, ProblemsNameTheLineAndTheWayOut) {
  EXPECT_EQ(ProblemOf("role = admin\n"), "f:1: stands before the first rule: begin with [NAME]");
  EXPECT_EQ(ProblemOf("[a\n"), "f:1: a rule begins with a name alone in brackets, as [alice]");
  EXPECT_EQ(ProblemOf("[a]\nrole = root\n"),
            "f:2: [a]: role is one of agent, viewer, operator, admin");
  EXPECT_EQ(ProblemOf("[a]\nrole = admin\n"),
            "f:1: [a]: fits nobody: give it a certificate, token-sha256 or service-account");
  EXPECT_EQ(ProblemOf("[a]\ncertificate = cn:a\n"),
            "f:1: [a]: has no role: agent, viewer, operator or admin");
  EXPECT_THAT(ProblemOf("[a]\ncertificate = alice\nrole = admin\n"),
              HasSubstr("f:2: [a]: certificate is dns:NAME, uri:URI or cn:NAME"));
  EXPECT_THAT(ProblemOf("[a]\ntoken-sha256 = secret\nrole = admin\n"),
              HasSubstr("64 hexadecimal digits"));
  for (const char* nothing : {"", "\n"}) {
    EXPECT_THAT(ProblemOf("[a]\ntoken-sha256 = " + Sha256HexOf(nothing) + "\nrole = admin\n"),
                HasSubstr("f:2: [a]: token-sha256 is the hash of an empty text"));
  }
  EXPECT_THAT(ProblemOf("[a]\ncertificate = cn:a,\nrole = admin\n"),
              HasSubstr("a comma with nothing beside it"));
  for (const char* const list : {"certificate = cn:a*b", "jobs = a*b, c", "jobs = **",
                                 "job-namespaces = *a", "service-account = a/*b"}) {
    EXPECT_THAT(ProblemOf(std::string("[a]\nrole = viewer\n") + list + "\n"),
                HasSubstr("has a * that is not at the end of a name"))
        << list;
  }
  for (const char* const list : {"jobs = a, \"b\"", "jobs = 'a'", "certificate = cn:\"a\""}) {
    EXPECT_THAT(ProblemOf(std::string("[a]\nrole = viewer\n") + list + "\n"),
                HasSubstr("has a quote"))
        << list;
  }
  EXPECT_THAT(ProblemOf("[a]\ncolour = red\n"), HasSubstr("colour is no key: the keys are"));
  EXPECT_THAT(ProblemOf("[a]\nrole = admin\nrole = viewer\n"),
              HasSubstr("f:3: [a]: role stands at line 2 already"));
  EXPECT_THAT(ProblemOf("[a]\ncertificate = cn:a\nrole = admin\njobs = x\n"),
              HasSubstr("jobs are for viewers and operators"));
  EXPECT_THAT(ProblemOf("[a]\ncertificate=cn:a\nrole=admin\n[a]\ncertificate=cn:b\nrole=admin\n"),
              HasSubstr("f:4: [a]: there is a rule of this name at line 1 already"));
}

TEST(AccessRulesTest, AFileIsGoodOrBadAsAWhole) {
  EXPECT_FALSE(ParseAccessFile(std::string(kGood) + "[x]\nrole = nothing\n", "f").ok());
}

TEST(AccessRulesTest, LimitsHold) {
  EXPECT_THAT(ProblemOf(std::string(limits::kAccessLineBytesMax + 1, 'x')),
              HasSubstr("is longer than"));
  std::string many;
  for (size_t i = 0; i <= limits::kAccessRulesMax; ++i) {
    many += "[r" + std::to_string(i) + "]\ncertificate = cn:x\nrole = viewer\n";
  }
  EXPECT_THAT(ProblemOf(many), HasSubstr("more than 4096 rules"));
  std::string wide = "[a]\nrole = viewer\ncertificate = cn:x";
  for (size_t i = 0; i < limits::kAccessPatternsMax; ++i) wide += ",cn:y";
  EXPECT_THAT(ProblemOf(wide), HasSubstr("more than 64 values"));
  std::string bad;
  for (size_t i = 0; i < 2 * limits::kAccessProblemsMax; ++i) bad += "x\n";
  const std::string problems = ProblemOf(bad);
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n') + 1,
            static_cast<ptrdiff_t>(limits::kAccessProblemsMax));
}

}  // namespace
}  // namespace neurontrace
