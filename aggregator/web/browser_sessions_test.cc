// SPDX-License-Identifier: Apache-2.0
// Goal: a cookie stands for its token until the session is idle, old, signed out or displaced, and
// there are never more sessions than allowed. Time is advanced, never waited for.
#include "aggregator/web/browser_sessions.h"

#include <gtest/gtest.h>

#include <vector>

namespace neurontrace {
namespace {

class BrowserSessionsTest : public ::testing::Test {
 protected:
  std::string Begin(const std::string& caller, const std::string& token) {
    const auto cookie = sessions_.Begin(caller, token);
    EXPECT_TRUE(cookie.ok()) << cookie.status();
    return *cookie;
  }

  FakeClock clock_;
  SeededRandom random_{1};
  BrowserSessions sessions_{clock_, random_};
};

TEST_F(BrowserSessionsTest, ACookieStandsForItsToken) {
  const std::string alice = Begin("alice", "alice's token");
  const std::string bob = Begin("bob", "bob's token");
  EXPECT_EQ(alice.size(), 64u);
  EXPECT_NE(alice, bob);
  EXPECT_EQ(sessions_.TokenOf(alice), "alice's token");
  EXPECT_EQ(sessions_.TokenOf(bob), "bob's token");
  EXPECT_EQ(sessions_.TokenOf(""), std::nullopt);
  EXPECT_EQ(sessions_.TokenOf(alice.substr(1)), std::nullopt);
  EXPECT_EQ(sessions_.counts().open, 2u);
}

TEST_F(BrowserSessionsTest, EndsWhenIdle) {
  const std::string cookie = Begin("alice", "token");
  for (int i = 0; i < 3; ++i) {
    clock_.AdvanceNs(limits::kPageSessionIdleNs - 1);
    EXPECT_TRUE(sessions_.TokenOf(cookie)) << i;
  }
  clock_.AdvanceNs(limits::kPageSessionIdleNs);
  EXPECT_EQ(sessions_.TokenOf(cookie), std::nullopt);
  EXPECT_EQ(sessions_.counts().expired, 1u);
  EXPECT_EQ(sessions_.counts().open, 0u);
}

TEST_F(BrowserSessionsTest, EndsWhenOldHoweverBusy) {
  const std::string cookie = Begin("alice", "token");
  uint64_t age_ns = 0;
  while (age_ns + limits::kPageSessionIdleNs / 2 < limits::kPageSessionNs) {
    clock_.AdvanceNs(limits::kPageSessionIdleNs / 2);
    age_ns += limits::kPageSessionIdleNs / 2;
    ASSERT_TRUE(sessions_.TokenOf(cookie)) << age_ns;
  }
  clock_.AdvanceNs(limits::kPageSessionNs - age_ns);
  EXPECT_EQ(sessions_.TokenOf(cookie), std::nullopt);
}

TEST_F(BrowserSessionsTest, EndsWhenSignedOut) {
  const std::string cookie = Begin("alice", "token");
  sessions_.End("somebody else's");
  EXPECT_TRUE(sessions_.TokenOf(cookie));
  sessions_.End(cookie);
  EXPECT_EQ(sessions_.TokenOf(cookie), std::nullopt);
  sessions_.End(cookie);
  EXPECT_EQ(sessions_.counts().signed_out, 1u);
}

TEST_F(BrowserSessionsTest, DisplacesOnlyTheCallersLeastRecentlyUsedOne) {
  const std::string bob = Begin("bob", "token");
  std::vector<std::string> cookies;
  for (size_t i = 0; i < limits::kPageSessionsOfCallerMax; ++i) {
    cookies.push_back(Begin("alice", "token"));
  }
  EXPECT_TRUE(sessions_.TokenOf(cookies[0]));  // so that the next one is the oldest
  Begin("alice", "token");
  EXPECT_TRUE(sessions_.TokenOf(cookies[0]));
  EXPECT_EQ(sessions_.TokenOf(cookies[1]), std::nullopt);
  EXPECT_TRUE(sessions_.TokenOf(cookies[2]));
  EXPECT_TRUE(sessions_.TokenOf(bob));
  EXPECT_EQ(sessions_.counts().displaced, 1u);
}

TEST_F(BrowserSessionsTest, RefusesBeyondTheLimitUntilOthersEnd) {
  for (size_t i = 0; i < limits::kPageSessionsMax; ++i) Begin(std::to_string(i), "token");
  EXPECT_TRUE(absl::IsResourceExhausted(sessions_.Begin("late", "token").status()));
  EXPECT_EQ(sessions_.counts().refused, 1u);
  clock_.AdvanceNs(limits::kPageSessionIdleNs);
  EXPECT_TRUE(sessions_.Begin("late", "token").ok());
  EXPECT_EQ(sessions_.counts().expired, limits::kPageSessionsMax);
}

}  // namespace
}  // namespace neurontrace
