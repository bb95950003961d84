// SPDX-License-Identifier: Apache-2.0
// Goal: the order in which the tap drains a slow runtime, while it streams and at the end, saves
// what can be saved, starves no core, and the outcome of fetches is reported. Method: the tap is
// stepped by hand over a runtime whose rings overwrite and whose fetches take time, during which
// the cores continue.
#include <algorithm>
#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tap/tap_test_support.h"

namespace neurontrace::tap {
namespace {

constexpr uint32_t kDrainCores = 16;
constexpr uint32_t kLoudCore = 11;
constexpr uint64_t kDrainRingEvents = 8192;
constexpr uint64_t kSlowDrainFetchNs = 10 * kNsPerMs;
constexpr uint64_t kQuietRate = 1'000;  // events a second
constexpr uint64_t kLoudRate = 50 * kQuietRate;

class TapDrainTest : public TapTest {
 protected:
  TapDrainTest() {
    runtime_.cores = kDrainCores;
    runtime_.ring_events = kDrainRingEvents;
    runtime_.event_bytes = 100;
    runtime_.during_fetch = [this](uint32_t core) {
      order_.push_back(core);
      Pass(kSlowDrainFetchNs);
    };
    for (uint32_t core = 0; core < kDrainCores; ++core) rates_[core] = kQuietRate;
    rates_[kLoudCore] = kLoudRate;
  }

  void InitAndStart() {
    Open(uint64_t{32} << 20);
    gate_.SetInitialised(false, false);
    Step();
    ASSERT_TRUE(agent_.Accept());
    TapTestStart start;
    start.start.max_events_per_nc = kDrainRingEvents;
    agent_.Send(start.Packet());
    Step();
    ASSERT_EQ(State(), TapState::kStreaming);
  }

  void Pass(uint64_t ns) {
    Advance(ns);
    for (uint32_t core = 0; core < kDrainCores; ++core) {
      owed_[core] += rates_[core] * ns;
      runtime_.Emit(core, owed_[core] / kNsPerSecond);
      owed_[core] %= kNsPerSecond;
    }
  }

  // Steps as the tap's thread does, for this much time.
  void Run(uint64_t ns) {
    for (const uint64_t end_ns = now_ns_ + ns; now_ns_ < end_ns;) {
      const uint64_t next_ns = tap_->Step();
      Read();
      if (next_ns > now_ns_) Pass(std::min(next_ns, end_ns) - now_ns_);
    }
  }
  void Read() {
    for (TapTestRecord& record : agent_.Read()) {
      const uint32_t core = record.header.nc_idx;
      if (record.header.type == static_cast<uint16_t>(TapRecordType::kFetchDocument)) {
        uint64_t& last = read_ns_.try_emplace(core, record.header.host_realtime_ns).first->second;
        longest_gap_ns_ = std::max(longest_gap_ns_, record.header.host_realtime_ns - last);
        last = record.header.host_realtime_ns;
      }
      records_.push_back(std::move(record));
    }
  }

  std::map<uint32_t, uint64_t> rates_;
  std::map<uint32_t, uint64_t> owed_;
  std::vector<uint32_t> order_;  // of the fetches
  std::map<uint32_t, uint64_t> read_ns_;
  uint64_t longest_gap_ns_ = 0;
  std::vector<TapTestRecord> records_;
};

TEST_F(TapDrainTest, OneLoudCoreOfManyLosesNothingAndStarvesNoneOfThem) {
  InitAndStart();
  Run(10 * kNsPerSecond);
  EXPECT_EQ(runtime_.overwritten, 0u);
  EXPECT_EQ(read_ns_.size(), kDrainCores);
  // Each core comes by within the time that DrainSchedule promises.
  EXPECT_LE(longest_gap_ns_, DrainSchedule::kIntervalMaxNs + DrainSchedule::kOverdueNs +
                                 2 * kDrainCores * kSlowDrainFetchNs);
  EXPECT_EQ(runtime_.misuses, 0);
}

// A control group may leave the process almost no processor: waiting costs the worker nothing.
TEST_F(TapDrainTest, TheCostOfRoundsIsProcessorTimeAndNotTime) {
  clock_.thread_cpu_ns = [] {
    static uint64_t cpu_ns = 0;
    return cpu_ns += 1'000;
  };
  InitAndStart();
  Run(kNsPerSecond);
  const TapBufferCounters& counters = agent_.header()->counters;
  EXPECT_GT(counters.fetch_ns.load(), kSlowDrainFetchNs) << "time passes in rounds";
  EXPECT_GT(counters.drain_rounds.load(), 0u);
  EXPECT_EQ(counters.drain_ns.load(), 1'000 * counters.drain_rounds.load());
}

TEST_F(TapDrainTest, AStopIsServedWithinARoundWhateverWaits) {
  for (auto& [core, rate] : rates_) rate = 1'000'000;  // more than can ever be drained
  InitAndStart();
  const uint64_t begin_ns = now_ns_;
  tap_->Step();
  EXPECT_LE(now_ns_ - begin_ns, RuntimeTrace::kRoundBudgetNs + kSlowDrainFetchNs);
  EXPECT_GT(runtime_.overwritten, 0u);
}

TEST_F(TapDrainTest, TheLastDrainTakesTheNearestFirstAndTheLoudestLast) {
  InitAndStart();
  Run(2 * kNsPerSecond);
  order_.clear();
  agent_.Send(TapTestStopPacket(1));
  Step();
  Read();
  EXPECT_FALSE(runtime_.running);
  ASSERT_GE(order_.size(), 2 * kDrainCores);
  EXPECT_EQ(order_.front(), kLoudCore);
  EXPECT_EQ(order_.back(), kLoudCore);
  // All that the loud core recorded but for the time of its own last fetch is there.
  EXPECT_LE(runtime_.backlog[kLoudCore], kLoudRate * kSlowDrainFetchNs / kNsPerSecond);
  TapTraceStopped stopped;
  memcpy(&stopped, records_.back().payload.data(), sizeof stopped);
  EXPECT_EQ(stopped.final_drain_complete, 1u);
  EXPECT_EQ(runtime_.overwritten, 0u);
}

TEST_F(TapDrainTest, TheLastDrainIsBoundedInTimeAndFairWithinIt) {
  for (auto& [core, rate] : rates_) rate = 1'000'000;
  InitAndStart();
  order_.clear();
  const uint64_t begin_ns = now_ns_;
  agent_.Send(TapTestStopPacket(1));
  Step();
  Read();
  EXPECT_LE(now_ns_ - begin_ns, RuntimeTrace::kFinalDrainBudgetNs + kSlowDrainFetchNs);
  std::map<uint32_t, int> fetches;
  for (const uint32_t core : order_) ++fetches[core];
  EXPECT_EQ(fetches.size(), kDrainCores);
  for (const auto& [core, count] : fetches) EXPECT_GE(count, 4) << core;
  TapTraceStopped stopped;
  memcpy(&stopped, records_.back().payload.data(), sizeof stopped);
  EXPECT_EQ(stopped.final_drain_complete, 0u);
}

TEST_F(TapDrainTest, ReportsFailedFetchBeforeNextDocument) {
  InitAndStart();
  Run(kNsPerSecond);
  records_.clear();
  runtime_.failures_to_come = 3;  // short of as many in a row as end the trace
  Run(kNsPerSecond);
  uint64_t failed = 0;
  for (const TapTestRecord& record : records_) {
    if (record.header.type != static_cast<uint16_t>(TapRecordType::kLoss)) continue;
    TapLoss loss;
    memcpy(&loss, record.payload.data(), sizeof loss);
    EXPECT_EQ(loss.refused_documents, 0u);
    EXPECT_LT(record.header.nc_idx, kDrainCores);
    failed += loss.failed_fetches;
  }
  EXPECT_EQ(failed, 3u);
  EXPECT_EQ(agent_.header()->counters.fetch_errors.load(), 3u);
  EXPECT_EQ(State(), TapState::kStreaming);
}

}  // namespace
}  // namespace neurontrace::tap
