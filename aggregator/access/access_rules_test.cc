// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/sha256.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kGood[] = R"(# who may do what
[agents]
certificate = ["dns:agent.neurontrace", "uri:spiffe://cluster/agent/*"]
role = "agent"

[alice]
certificate = "cn:alice"   # of the training team
role = "operator"
jobs = ["team-a-*", "shared"]
)";

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
      Parsed("[grafana]\nrole = \"viewer\"\ntoken-sha256 = \"" + Sha256HexOf("secret") + "\"\n");
  EXPECT_EQ(rules.ByToken("secret")->name, "grafana");
  EXPECT_EQ(rules.ByToken("Secret"), std::nullopt);
  EXPECT_EQ(rules.ByToken(""), std::nullopt);
  EXPECT_EQ(rules.ByToken(Sha256HexOf("secret")), std::nullopt)
      << "a hash must not match as a token";
}

TEST(AccessRulesTest, RulesCanSelectNamespacesAndUsers) {
  const AccessRules rules = Parsed(R"([bob]
role = "operator"
certificate = "cn:bob"
job-namespaces = ["team-b*", "shared"]
job-uids = [1000, "0"]
)");
  const auto bob = rules.ByCertificate({"cn:bob"});
  ASSERT_TRUE(bob);
  EXPECT_EQ(bob->namespaces, (std::vector<std::string>{"team-b*", "shared"}));
  EXPECT_EQ(bob->uids, (std::vector<std::string>{"1000", "0"}));
  for (const char* const bad : {"\"root\"", "-1", "\"007\"", "\"1000*\"", "12345678901"}) {
    EXPECT_THAT(ProblemOf(std::string("[a]\nrole = \"viewer\"\njob-uids = ") + bad + "\n"),
                HasSubstr(std::string("f:3:1: [a]: job-uids = ") + bad +
                          ": job-uids must be a numeric user id"));
  }
  EXPECT_THAT(ProblemOf("[a]\nrole = \"viewer\"\njob-namespaces = \"*\"\n"),
              HasSubstr("omit the key"));
  EXPECT_THAT(ProblemOf("[a]\nrole = \"admin\"\ncertificate = \"cn:a\"\njob-uids = 1\n"),
              HasSubstr("f:1:2: [a]: jobs applies only to viewers and operators"));
}

TEST(AccessRulesTest, ServiceAccountsAreNamedWithTheirNamespace) {
  const AccessRules rules = Parsed(
      "[jobs]\nrole = \"viewer\"\nservice-account = [\"train/*\", \"monitoring/grafana\"]\n");
  EXPECT_EQ(rules.ByServiceAccount("train/job-7")->name, "jobs");
  EXPECT_EQ(rules.ByServiceAccount("monitoring/grafana")->name, "jobs");
  EXPECT_EQ(rules.ByServiceAccount("monitoring/grafana2"), std::nullopt);
  EXPECT_EQ(rules.ByServiceAccount("train2/job"), std::nullopt);
  EXPECT_TRUE(rules.has_service_accounts());
  EXPECT_FALSE(Parsed(kGood).has_service_accounts());
  for (const char* const bad : {"grafana", "*", "train*", "/x", "a/", "a/b/c"}) {
    EXPECT_THAT(
        ProblemOf(std::string("[a]\nrole = \"viewer\"\nservice-account = \"") + bad + "\"\n"),
        HasSubstr("service-account must be NAMESPACE/NAME"));
  }
}

TEST(AccessRulesTest, WithoutFileRoleComesFromCertificate) {
  const AccessRules none;
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:operator", "dns:d", "cn:bob"}),
            (Caller{"bob", Role::kOperator, {}, {}, {}}));
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:agent"})->name, "agent");
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:root", "cn:neurontrace:admin"}), std::nullopt);
  EXPECT_EQ(none.ByCertificate({"uri:neurontrace:admin", "uri:neurontrace:viewer"})->role,
            Role::kViewer)
      << "the lesser of two roles applies";
  EXPECT_EQ(none.ByToken("x"), std::nullopt);
}

TEST(AccessRulesTest, WithAFileARoleInACertificateIsNothing) {
  EXPECT_EQ(Parsed(kGood).ByCertificate({"uri:neurontrace:admin"}), std::nullopt);
  EXPECT_EQ(Parsed("").ByCertificate({"uri:neurontrace:admin"}), std::nullopt);
}

TEST(AccessRulesTest, ProblemsNameLineAndRemedy) {
  const auto problem_of = [](const std::string& more) {
    return ProblemOf("[a]\nrole = \"viewer\"\n" + more + "\n");
  };
  EXPECT_EQ(ProblemOf("role = \"admin\"\n"),
            "f:1:1: is outside of a rule; a rule starts with [NAME]");
  EXPECT_EQ(ProblemOf("[a]\nrole = \"root\"\n"),
            "f:2:1: [a]: role = \"root\": role must be one of agent, viewer, operator, admin");
  EXPECT_EQ(problem_of(""),
            "f:1:2: [a]: matches no caller; add certificate, token-sha256 or service-account");
  EXPECT_EQ(ProblemOf("[a]\ncertificate = \"cn:a\"\n"),
            "f:1:2: [a]: has no role; set agent, viewer, operator or admin");
  EXPECT_THAT(ProblemOf("[a.b]\nrole = \"viewer\"\n"), HasSubstr("[a]: unknown key 'b'"));
  EXPECT_THAT(
      problem_of("certificate = \"alice\""),
      HasSubstr("f:3:1: [a]: certificate = \"alice\": certificate must be dns:NAME, uri:URI or"));
  EXPECT_THAT(problem_of("token-sha256 = \"secret\""),
              AllOf(HasSubstr("64 hexadecimal digits"), Not(HasSubstr("secret"))));
  for (const char* nothing : {"", "\n"}) {
    EXPECT_THAT(problem_of("token-sha256 = \"" + Sha256HexOf(nothing) + "\""),
                HasSubstr("f:3:1: [a]: token-sha256 is the hash of an empty string"));
  }
  EXPECT_THAT(problem_of("certificate = [\"cn:a\", \"\"]"),
              HasSubstr("f:3:24: [a]: certificate has no value"));
  for (const char* const list :
       {"certificate = \"cn:a*b\"", "jobs = [\"a*b\", \"c\"]", "jobs = \"**\"",
        "job-namespaces = \"*a\"", "service-account = \"a/*b\""}) {
    EXPECT_THAT(problem_of(list), HasSubstr("has a * that is not at the end of a name")) << list;
  }
  EXPECT_THAT(problem_of("jobs = \"a, b\""), HasSubstr("jobs contains a comma"));
  EXPECT_THAT(problem_of("jobs = 7"), HasSubstr("jobs must be a quoted string"));
  EXPECT_THAT(problem_of("colour = \"red\""), HasSubstr("unknown key 'colour'; the keys are"));
  EXPECT_THAT(problem_of("role = \"viewer\""), HasSubstr("f:3:"));
  EXPECT_THAT(ProblemOf("[a]\ncertificate = \"cn:a\"\nrole = \"admin\"\njobs = \"x\"\n"),
              HasSubstr("jobs applies only to viewers and operators"));
  EXPECT_THAT(ProblemOf("[a]\nrole = \"admin\"\n[a]\nrole = \"admin\"\n"), HasSubstr("f:3:"));
  EXPECT_THAT(ProblemOf("[a]\ncertificate = cn:a, dns:b\nrole = viewer\n"),
              HasSubstr("\n[a]\ncertificate = [\"cn:a\", \"dns:b\"]\nrole = \"viewer\""));
}

TEST(AccessRulesTest, AFileIsGoodOrBadAsAWhole) {
  EXPECT_FALSE(ParseAccessFile(std::string(kGood) + "[x]\nrole = \"nothing\"\n", "f").ok());
}

TEST(AccessRulesTest, LimitsHold) {
  std::string many;
  for (size_t i = 0; i <= limits::kAccessRulesMax; ++i) {
    many += "[r" + std::to_string(i) + "]\ncertificate = \"cn:x\"\nrole = \"viewer\"\n";
  }
  EXPECT_THAT(ProblemOf(many), HasSubstr("more than 4096 rules"));
  std::string wide = "[a]\nrole = \"viewer\"\ncertificate = [\"cn:x\"";
  for (size_t i = 0; i < limits::kAccessPatternsMax; ++i) wide += ",\"cn:y\"";
  EXPECT_THAT(ProblemOf(wide + "]\n"), HasSubstr("more than 64 values"));
  EXPECT_THAT(ProblemOf("[" + std::string(limits::kAccessNameBytesMax + 1, 'x') + "]\n"),
              HasSubstr("a printable name of 1 to 128 bytes"));
}

}  // namespace
}  // namespace neurontrace
