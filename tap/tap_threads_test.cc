// SPDX-License-Identifier: Apache-2.0
// Goal: the tap's thread and the application's never use the runtime at the same time. Method: a
// real thread steps the tap while the test, as the application, takes the runtime back again and
// again and then writes to it without any lock: ThreadSanitizer sees whoever comes in between.
#include <atomic>
#include <thread>

#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

class TapThreadsTest : public TapTest {
 protected:
  TapThreadsTest() {
    clock_ = kSystemTapClock;
    Open();
    gate_.SetInitialised(false, false);
    thread_ = std::thread([this] {
      gate_.ThreadRuns();
      while (!ending_.load())
        tap_->Sleep(std::min(tap_->Step(), clock_.monotonic_ns() + kPatienceNs));
      gate_.ThreadEnded();
    });
    while (!agent_.Accept()) std::this_thread::yield();  // tidy: poll
    agent_.Send(TapTestStart().Packet());
    WaitForState(TapState::kStreaming);
  }

  ~TapThreadsTest() override {
    ending_.store(true);
    gate_.Wake();
    thread_.join();
  }

  void WaitForState(TapState state) {
    const uint64_t deadline = clock_.monotonic_ns() + 20 * kNsPerSecond;
    while (agent_.header()->state.load() != static_cast<uint32_t>(state)) {
      ASSERT_LT(clock_.monotonic_ns(), deadline) << TapStateName(state);
      std::this_thread::yield();  // tidy: poll
    }
  }

  // Until the tap has started that many traces in all.
  void WaitForStarts(int starts) {
    const uint64_t deadline = clock_.monotonic_ns() + 20 * kNsPerSecond;
    while ((starts_seen_ += static_cast<int>(ReadOfType(TapRecordType::kTraceStarted).size())) <
           starts) {
      ASSERT_LT(clock_.monotonic_ns(), deadline);
      std::this_thread::yield();  // tidy: poll
    }
  }

  int starts_seen_ = 0;
  static constexpr uint64_t kPatienceNs = 100 * kNsPerMs;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

TEST_F(TapThreadsTest, ApplicationOwnsRuntimeDuringClose) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kYield, 0));
    ASSERT_FALSE(runtime_.running);
    runtime_.Emit(0, 500);
    runtime_.running = true;  // the application's own trace
    gate_.SetProfiler(RuntimeGate::Profiler::kSystemTrace, true);
    gate_.ReleaseFromApp(RuntimeGate::Claim::kYield);
    worker_facts_.RecordCommunicator(i % 4, static_cast<uint32_t>(i), 64, "nrt_build_global_comm");
    gate_.Wake();

    ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kYield, 0));
    runtime_.running = false;
    gate_.SetProfiler(RuntimeGate::Profiler::kSystemTrace, false);
    gate_.ReleaseFromApp(RuntimeGate::Claim::kYield);
    if (i % 10 == 0) WaitForState(TapState::kStreaming);
    agent_.Read();
    agent_.ReadStatuses();
  }
  WaitForState(TapState::kStreaming);
  ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kClose, 0));
  EXPECT_EQ(runtime_.misuses, 0);
  EXPECT_EQ(runtime_.starts, runtime_.stops);
  gate_.ReleaseFromApp(RuntimeGate::Claim::kClose);
}

TEST_F(TapThreadsTest, ClosingAndOpeningAgainLosesNothing) {
  uint64_t emitted = 0;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kClose, 0));
    gate_.ReleaseFromApp(RuntimeGate::Claim::kClose);
    // Between close and init nobody may come in.
    runtime_.Emit(1, 100);
    emitted += 100;
    gate_.SetInitialised(false, false);
    WaitForStarts(i + 2);
    agent_.ReadStatuses();
  }
  ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kExit, 20'000));
  EXPECT_EQ(runtime_.sequence[1], emitted);
  EXPECT_EQ(runtime_.misuses, 0);
  EXPECT_EQ(runtime_.live_buffers, 0);
}

TEST_F(TapThreadsTest, SeveralThreadsMayCloseAtOnce) {
  for (int i = 0; i < 20; ++i) {
    std::thread other([this] {
      EXPECT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kYield, 0));
      EXPECT_FALSE(runtime_.running);
      gate_.ReleaseFromApp(RuntimeGate::Claim::kYield);
    });
    ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kClose, 0));
    EXPECT_FALSE(runtime_.running);
    gate_.ReleaseFromApp(RuntimeGate::Claim::kClose);
    other.join();
    gate_.SetInitialised(false, false);
    WaitForStarts(starts_seen_ + 1);
    agent_.ReadStatuses();
  }
  ASSERT_TRUE(gate_.AcquireForApp(RuntimeGate::Claim::kExit, 20'000));
  EXPECT_EQ(runtime_.misuses, 0);
}

}  // namespace
}  // namespace neurontrace::tap
