// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/call_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "aggregator/access/call_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kRateSecondNs = 1'000'000'000;

class CallRatesTest : public ::testing::Test {
 protected:
  int TakeAll(CallRates& rates, const std::string& caller) {
    int taken = 0;
    while (taken < 1'000 && rates.Take(caller).ok()) ++taken;
    return taken;
  }

  FakeClock clock_;
  prometheus::Registry registry_;
  prometheus::Counter& forgotten_ =
      prometheus::BuildCounter().Name("forgotten").Register(registry_).Add({});
  CallRates rates_{clock_, {.per_second = 10, .burst = 20}, "--calls-per-second", forgotten_, 2};
};

TEST_F(CallRatesTest, ABurstAtOnceAndThenSoManyASecond) {
  EXPECT_EQ(TakeAll(rates_, "alice"), 20);
  clock_.AdvanceNs(kRateSecondNs);
  EXPECT_EQ(TakeAll(rates_, "alice"), 10);
  clock_.AdvanceNs(3'600 * kRateSecondNs);
  EXPECT_EQ(TakeAll(rates_, "alice"), 20) << "a long pause allows one burst";
}

TEST_F(CallRatesTest, OthersHaveTheirOwn) {
  EXPECT_EQ(TakeAll(rates_, "alice"), 20);
  EXPECT_EQ(TakeAll(rates_, "bob"), 20);
}

TEST_F(CallRatesTest, RefusalNamesRetryDelay) {
  TakeAll(rates_, "alice");
  const absl::Status refused = rates_.Take("alice");
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_EQ(refused.message(),
            "alice exceeds 10 calls per second (--calls-per-second); try again in 0.10 s");
  // Refusals cost nothing: who waits as long as that is let pass.
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(rates_.Take("alice").ok());
  clock_.AdvanceNs(kRateSecondNs / 10);
  EXPECT_TRUE(rates_.Take("alice").ok());
}

TEST_F(CallRatesTest, ForgetsLeastRecentCaller) {
  TakeAll(rates_, "alice");
  TakeAll(rates_, "bob");
  EXPECT_FALSE(rates_.Take("alice").ok()) << "her refused call is newer than bob's";
  EXPECT_TRUE(rates_.Take("carol").ok());
  EXPECT_FALSE(rates_.Take("alice").ok());
  EXPECT_EQ(forgotten_.Value(), 1.0);
  EXPECT_EQ(TakeAll(rates_, "bob"), 20) << "bob replaces carol";
  clock_.AdvanceNs(3'600 * kRateSecondNs);
  const double before = forgotten_.Value();
  EXPECT_TRUE(rates_.Take("dave").ok());
  EXPECT_EQ(forgotten_.Value(), before) << "the dropped caller had no calls to count";
}

TEST_F(CallRatesTest, AgentsAreCountedByTheirAddresses) {
  CallLimits limits(clock_, registry_, 1);
  for (uint32_t i = 0; i < limits::kAgentCallsAtOnceMax; ++i) {
    ASSERT_TRUE(limits.AdmitAgent("ipv4:10.0.0.9:" + std::to_string(i)).ok());
  }
  EXPECT_THAT(std::string(limits.AdmitAgent("ipv4:10.0.0.9:1").message()),
              HasSubstr("ipv4:10.0.0.9 exceeds"));
  EXPECT_TRUE(limits.AdmitAgent("ipv4:10.0.0.10:1").ok());
  EXPECT_EQ(RefusedCalls(registry_, "too_many").Value(), 1.0);
  EXPECT_TRUE(limits.AdmitCaller("ipv4:10.0.0.9").ok()) << "a caller's name is not an address";
}

}  // namespace
}  // namespace neurontrace
