// SPDX-License-Identifier: Apache-2.0
// Goal: no more calls than allowed, in total and per caller; a call whose client does not read is
// ended. Time is advanced by the test.
#include "aggregator/operator/streaming_call_limiter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <atomic>
#include <thread>
#include <vector>

#include "lib/base/clock.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using Call = std::unique_ptr<StreamingCallLimiter::Call>;

class StreamingCallLimiterTest : public ::testing::Test {
 protected:
  StreamingCallLimiter Make(size_t at_once_max, size_t of_caller_max) {
    return StreamingCallLimiter({.clock = clock_,
                                 .what = "exports",
                                 .at_once_max = at_once_max,
                                 .of_caller_max = of_caller_max,
                                 .refused = refused_,
                                 .unread = unread_});
  }
  static Call Take(StreamingCallLimiter& calls, const std::string& caller) {
    auto call = calls.Take(caller, [] {});
    return call.ok() ? *std::move(call) : nullptr;
  }

  FakeClock clock_;
  prometheus::Counter refused_;
  prometheus::Counter unread_;
};

TEST_F(StreamingCallLimiterTest, LimitsCallsInTotalAndPerCaller) {
  StreamingCallLimiter calls = Make(3, 2);
  Call first = Take(calls, "alice");
  const Call second = Take(calls, "alice");
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_THAT(std::string(calls.Take("alice", [] {}).status().message()),
              HasSubstr("alice has reached the limit of 2 exports per caller"));
  const Call third = Take(calls, "bob");
  EXPECT_NE(third, nullptr);
  const auto refused = calls.Take("carol", [] {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("reached its limit of 3 exports at once; try again"));
  EXPECT_EQ(refused_.Value(), 2);
  first.reset();
  EXPECT_NE(Take(calls, "carol"), nullptr) << "a refused call does not count";
}

TEST_F(StreamingCallLimiterTest, CancelsNonReadersButNotSlowReaders) {
  StreamingCallLimiter calls = Make(2, 2);
  int cancelled = 0;
  const Call slow = Take(calls, "alice");
  auto unread = calls.Take("bob", [&] { ++cancelled; });
  ASSERT_TRUE(unread.ok());
  // What waits in a write sees time go by.
  EXPECT_FALSE((*unread)->Write([&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(slow->Write([&] {
        clock_.AdvanceNs(limits::kUnreadNsMax / 3 - 1);
        return true;
      }));
      calls.Poll();
    }
    EXPECT_EQ(cancelled, 0);
    clock_.AdvanceNs(3);
    calls.Poll();
    calls.Poll();
    return cancelled == 0;
  }));
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(unread_.Value(), 1);
  EXPECT_EQ((*unread)->Judge(absl::CancelledError("")).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(slow->Judge(absl::OkStatus()).ok());
  clock_.AdvanceNs(limits::kUnreadNsMax * 2);
  calls.Poll();
  EXPECT_EQ(unread_.Value(), 1) << "a call without writes does not wait for its reader";
}

TEST_F(StreamingCallLimiterTest, NeverMoreFromManyThreads) {
  StreamingCallLimiter calls = Make(3, 3);
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const Call call = Take(calls, "alice");
        if (call == nullptr) continue;
        const int now = ++held;
        int before = most;
        while (now > before && !most.compare_exchange_weak(before, now)) {
        }
        --held;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 3);
  EXPECT_NE(Take(calls, "alice"), nullptr);
}

}  // namespace
}  // namespace neurontrace
