// SPDX-License-Identifier: Apache-2.0
// When the API server is asked who a token is, and what its answer is worth for how long.
#include "aggregator/access/token_reviews.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "aggregator/access/token_test_support.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kReviewSecondNs = 1'000'000'000;
constexpr uint64_t kNowSeconds = 1'700'000'000;  // FakeClock's

// A server that knows these tokens.
class FakeTokenReviewer final : public TokenReviewer {
 public:
  absl::StatusOr<std::optional<std::string>> Review(const std::string& token) const override {
    const std::lock_guard lock(mutex_);
    ++asked;
    if (is_away) return Unavailable("connection refused by 10.96.0.1");
    const auto known = accounts.find(token);
    return known == accounts.end() ? std::nullopt : std::optional(known->second);
  }

  std::map<std::string, std::string> accounts;
  mutable int asked = 0;
  bool is_away = false;

 private:
  mutable std::mutex mutex_;
};

class TokenReviewsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::string> Account(const std::string& token) {
    return reviews_.AccountOf(token,
                              [](std::string_view account) { return account != "a/nobody"; });
  }
  std::string Token(const std::string& salt, const std::string& name = "watcher") {
    const std::string token = TestToken("a", name, kNowSeconds + 3'600, salt);
    server_.accounts[token] = "a/" + name;
    return token;
  }
  double Counted(const std::string& result) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "neurontrace_aggregator_token_reviews_total") continue;
      for (const auto& metric : family.metric) {
        if (metric.label.front().value == result) return metric.counter.value;
      }
    }
    return -1;
  }

  FakeClock clock_;
  prometheus::Registry registry_;
  std::unique_ptr<FakeTokenReviewer> reviewer_ = std::make_unique<FakeTokenReviewer>();
  FakeTokenReviewer& server_ = *reviewer_;  // which reviews_ owns
  TokenReviews reviews_{"neurontrace", std::move(reviewer_), clock_, registry_, 64};
};

TEST_F(TokenReviewsTest, ReviewsValidTokenOncePerMinute) {
  const std::string token = Token("1");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Account(token).value(), "a/watcher");
  EXPECT_EQ(server_.asked, 1);
  clock_.AdvanceNs(limits::kTokenGoodNs - 1);
  EXPECT_TRUE(Account(token).ok());
  EXPECT_EQ(server_.asked, 1);
  clock_.AdvanceNs(1);
  server_.accounts.clear();
  EXPECT_TRUE(absl::IsUnauthenticated(Account(token).status())) << "the token was revoked";
  EXPECT_EQ(server_.asked, 2);
  EXPECT_EQ(Counted("good"), 1);
  EXPECT_EQ(Counted("bad"), 1);
}

TEST_F(TokenReviewsTest, NoAnswerCountsLongerThanTheToken) {
  const std::string token = TestToken("a", "watcher", kNowSeconds + 5);
  server_.accounts[token] = "a/watcher";
  EXPECT_TRUE(Account(token).ok());
  clock_.AdvanceNs(5 * kReviewSecondNs);
  EXPECT_THAT(std::string(Account(token).status().message()), HasSubstr("has expired"));
  EXPECT_EQ(server_.asked, 1);
}

TEST_F(TokenReviewsTest, ReviewsInvalidTokenSooner) {
  const std::string token = TestToken("a", "watcher", kNowSeconds + 3'600);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(absl::IsUnauthenticated(Account(token).status()));
  EXPECT_EQ(server_.asked, 1);
  clock_.AdvanceNs(limits::kTokenBadNs);
  server_.accounts[token] = "a/watcher";
  EXPECT_EQ(Account(token).value(), "a/watcher");
}

TEST_F(TokenReviewsTest, UnavailableServerRefusesEveryone) {
  const std::string token = Token("1");
  EXPECT_TRUE(Account(token).ok());
  clock_.AdvanceNs(limits::kTokenGoodNs);
  server_.is_away = true;
  for (int i = 0; i < 10; ++i) {
    const absl::Status status = Account(token).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_EQ(status.message().find("10.96.0.1"), std::string::npos)
        << "the message must not reveal the address";
  }
  EXPECT_EQ(server_.asked, 2);
  EXPECT_EQ(Counted("failed"), 1);
  clock_.AdvanceNs(limits::kTokenFailedNs);
  server_.is_away = false;
  EXPECT_TRUE(Account(token).ok());
}

TEST_F(TokenReviewsTest, DoesNotReviewObviouslyInvalidTokens) {
  EXPECT_THAT(std::string(Account("no token").status().message()), HasSubstr("neither"));
  EXPECT_THAT(std::string(Account(Token("1", "nobody")).status().message()),
              HasSubstr("belongs to a/nobody"));
  EXPECT_THAT(std::string(Account(TestToken("a", "watcher", kNowSeconds)).status().message()),
              HasSubstr("has expired"));
  EXPECT_THAT(std::string(Account(TestToken(R"({"aud":["x"],"sub":"system:serviceaccount:a:b"})"))
                              .status()
                              .message()),
              HasSubstr("is not for the audience neurontrace"));
  EXPECT_EQ(server_.asked, 0);
}

TEST_F(TokenReviewsTest, AFloodOfTokensIsHeldBackAndThoseThatWereGoodAreNot) {
  const std::string good = Token("good");
  EXPECT_TRUE(Account(good).ok());
  clock_.AdvanceNs(limits::kTokenGoodNs);
  int refused = 0;
  for (uint32_t i = 0; i < limits::kTokenReviewsBurstMax + 50; ++i) {
    if (i % 16 == 0) {
      EXPECT_TRUE(Account(good).ok());
    }
    const auto account = Account(TestToken("a", "watcher", kNowSeconds + 7'200, std::to_string(i)));
    refused += absl::IsUnavailable(account.status()) ? 1 : 0;
  }
  EXPECT_EQ(refused, 50);
  EXPECT_EQ(Counted("held_back"), 50);
  EXPECT_EQ(server_.asked, 2 + static_cast<int>(limits::kTokenReviewsBurstMax));
  clock_.AdvanceNs(limits::kTokenGoodNs);
  EXPECT_TRUE(Account(good).ok());
  EXPECT_TRUE(Account(Token("new")).ok());
}

TEST_F(TokenReviewsTest, TheOldestAnswersAreForgotten) {
  const std::string first = Token("first");
  EXPECT_TRUE(Account(first).ok());
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(Account(Token(std::to_string(i))).ok());
  EXPECT_EQ(server_.asked, 65);
  EXPECT_TRUE(Account(Token("63")).ok());
  EXPECT_EQ(server_.asked, 65);
  EXPECT_TRUE(Account(first).ok());
  EXPECT_EQ(server_.asked, 66);
}

// A server that answers when the test says so.
class SlowTokenReviewer final : public TokenReviewer {
 public:
  absl::StatusOr<std::optional<std::string>> Review(const std::string&) const override {
    ++asked;
    begun.release();
    can_answer.acquire();
    return std::optional<std::string>("a/watcher");
  }

  mutable std::counting_semaphore<> begun{0};
  mutable std::counting_semaphore<> can_answer{0};
  mutable std::atomic<int> asked = 0;
};

TEST(TokenReviewsAtOnceTest, SharesReviewsAndLimitsConcurrency) {
  FakeClock clock;
  prometheus::Registry registry;
  auto reviewer = std::make_unique<SlowTokenReviewer>();
  const SlowTokenReviewer& server = *reviewer;
  TokenReviews reviews("neurontrace", std::move(reviewer), clock, registry);
  const auto account_of = [&](int salt) {
    return reviews.AccountOf(TestToken("a", "watcher", kNowSeconds + 60, std::to_string(salt)),
                             [](std::string_view) { return true; });
  };
  std::vector<std::future<absl::StatusOr<std::string>>> calls;
  const auto call = [&](int salt) {
    calls.push_back(std::async(std::launch::async, [&, salt] { return account_of(salt); }));
  };
  const int most = static_cast<int>(limits::kTokenReviewsAtOnceMax);
  for (int i = 0; i < most; ++i) call(i);
  for (int i = 0; i < most; ++i) server.begun.acquire();
  EXPECT_TRUE(absl::IsUnavailable(account_of(most).status())) << "one token above the limit";
  for (int i = 0; i < 10; ++i) call(0);  // whether they wait or come later, they do not ask
  server.can_answer.release(most);
  for (auto& each : calls) EXPECT_EQ(each.get().value(), "a/watcher");
  EXPECT_EQ(server.asked, most);
}

}  // namespace
}  // namespace neurontrace
