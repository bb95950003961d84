// SPDX-License-Identifier: Apache-2.0
// Goal: guessing is slow for an address, and costs nobody else anything.
#include "aggregator/web/sign_in_throttle.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

class SignInThrottleTest : public ::testing::Test {
 protected:
  // Returns how many wrong tokens a peer can try now.
  uint64_t TriesOf(const std::string& peer) {
    uint64_t tries = 0;
    while (tries < 1'000 && throttle_.IsTryAllowed(peer)) {
      throttle_.RecordFailure(peer);
      ++tries;
    }
    return tries;
  }

  FakeClock clock_;
  SignInThrottle throttle_{clock_};
};

TEST_F(SignInThrottleTest, AllowsABurstThenOneEachPause) {
  EXPECT_EQ(TriesOf("ipv4:10.0.0.9:4711"), limits::kSignInFailuresAtOnce);
  EXPECT_EQ(TriesOf("ipv4:10.0.0.9:4712"), 0u) << "another port is no other address";
  clock_.AdvanceNs(limits::kSignInPauseNs);
  EXPECT_EQ(TriesOf("ipv4:10.0.0.9:4711"), 1u);
  clock_.AdvanceNs(limits::kSignInPauseNs * 1'000);
  EXPECT_EQ(TriesOf("ipv4:10.0.0.9:4711"), limits::kSignInFailuresAtOnce);
  EXPECT_EQ(throttle_.refused(), 4u);
}

TEST_F(SignInThrottleTest, OtherAddressesAreFree) {
  TriesOf("ipv4:10.0.0.9:4711");
  EXPECT_TRUE(throttle_.IsTryAllowed("ipv4:10.0.0.10:4711"));
}

TEST_F(SignInThrottleTest, RightTokensCostNothing) {
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(throttle_.IsTryAllowed("ipv4:10.0.0.9:4711"));
}

TEST_F(SignInThrottleTest, ANetworkOfIpv6IsOneAddress) {
  EXPECT_EQ(TriesOf("ipv6:[2001:db8::1]:4711"), limits::kSignInFailuresAtOnce);
  EXPECT_EQ(TriesOf("ipv6:[2001:db8::ffff:2]:4711"), 0u);
  EXPECT_EQ(TriesOf("ipv6:[2001:db8:0:1::1]:4711"), limits::kSignInFailuresAtOnce);
}

TEST_F(SignInThrottleTest, ForgetsTheAddressThatFailedLongestAgo) {
  TriesOf("ipv4:10.0.0.9:1");
  for (size_t i = 0; i < limits::kSignInAddressesMax; ++i) {
    throttle_.RecordFailure("ipv4:10." + std::to_string(i / 256) + "." + std::to_string(i % 256) +
                            ".1:1");
  }
  EXPECT_TRUE(throttle_.IsTryAllowed("ipv4:10.0.0.9:1"));
}

}  // namespace
}  // namespace neurontrace
