// SPDX-License-Identifier: Apache-2.0
// Goal: a call of the page is made by the caller that its ticket stands for, while the ticket
// lives, and an invented ticket stands for nobody.
#include "aggregator/access/page_callers.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "aggregator/access/access_control.h"
#include "lib/base/sha256.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

TEST(PageCallersTest, ATicketStandsForItsCallerWhileItLives) {
  PageCallers callers;
  auto ticket = callers.Issue({.credentials = {.token = "secret"}, .from = "ipv4:10.0.0.9:4711"});
  const auto other = callers.Issue({.from = "ipv4:10.0.0.8:1"});
  ASSERT_NE(ticket->text(), other->text());
  EXPECT_EQ(ticket->text().size(), 64u);
  const std::string text = ticket->text();
  const Metadata metadata = {{PageCallers::kTicket, text}};
  const auto caller = callers.Find(metadata);
  ASSERT_NE(caller, nullptr);
  EXPECT_EQ(caller->credentials.token, "secret");
  EXPECT_EQ(caller->from, "ipv4:10.0.0.9:4711");
  ticket.reset();
  EXPECT_EQ(callers.Find(metadata), nullptr);
  EXPECT_EQ(callers.size(), 1u);
}

TEST(PageCallersTest, AnInventedTicketStandsForNobody) {
  PageCallers callers;
  const auto ticket = callers.Issue({.credentials = {.token = "secret"}});
  const std::string invented(64, '0');
  EXPECT_EQ(callers.Find({{PageCallers::kTicket, invented}}), nullptr);
  EXPECT_EQ(callers.Find({}), nullptr);
  // A second header must not hide the first one.
  EXPECT_EQ(
      callers.Find({{PageCallers::kTicket, invented}, {PageCallers::kTicket, ticket->text()}}),
      nullptr);
}

// What the page's port asks about each request.
class AdmitPageTest : public ::testing::Test {
 protected:
  std::unique_ptr<AccessControl> Open(const std::string& rules) {
    const std::string file = directory_ / "access";
    std::FILE* const out = std::fopen(file.c_str(), "w");
    EXPECT_NE(out, nullptr);
    std::fputs(rules.c_str(), out);
    std::fclose(out);
    auto access = AccessControl::Open({.policy_file = file,
                                       .audit_log = directory_ / "audit.log",
                                       .listen = "127.0.0.1:9400",
                                       .has_tls = true,
                                       .calls_per_second = 2},
                                      {registry_, clock_, clock_});
    EXPECT_TRUE(access.ok()) << access.status();
    return *std::move(access);
  }

  TemporaryDirectory directory_;
  prometheus::Registry registry_;
  FakeClock clock_;
};

TEST_F(AdmitPageTest, NeedsAViewerAndLimitsItsRequests) {
  const auto access = Open("[eve]\ntoken-sha256 = \"" + Sha256HexOf("eve's") +
                           "\"\nrole = \"viewer\"\n[agents]\ntoken-sha256 = \"" +
                           Sha256HexOf("agent's") + "\"\nrole = \"agent\"\n");
  const auto eve = access->AdmitPage({.token = "eve's"}, "ipv4:10.0.0.9:1");
  ASSERT_TRUE(eve.ok()) << eve.status();
  EXPECT_EQ(eve->name, "eve");
  EXPECT_EQ(eve->role, Role::kViewer);
  EXPECT_TRUE(absl::IsPermissionDenied(access->AdmitPage({.token = "agent's"}, "").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(access->AdmitPage({.token = "guess"}, "").status()));
  EXPECT_TRUE(absl::IsUnauthenticated(access->AdmitPage({}, "").status()));
  // A burst is two seconds' worth: four requests, and one was used.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(access->AdmitPage({.token = "eve's"}, "").ok()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(access->AdmitPage({.token = "eve's"}, "").status()));
  EXPECT_EQ(RefusedCalls(registry_, "unauthenticated").Value(), 2);
}

}  // namespace
}  // namespace neurontrace
