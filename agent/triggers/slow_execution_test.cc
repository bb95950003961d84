// SPDX-License-Identifier: Apache-2.0
// The goal: an execution that is slow by its core's own measure is reported, whichever clock is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/triggers/running_median.h"
#include "agent/triggers/trigger_test_support.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr uint64_t kNsPerSecond = AgentTriggersWorld::kSecondNs;
constexpr uint64_t kMillisecondNs = AgentTriggersWorld::kMillisecondNs;

class SlowExecutionTest : public testing::Test, protected AgentTriggersWorld {
 protected:
  SlowExecutionTest() { triggers.SetRules({Rule("slow", TriggerKind::kSlowExecution)}); }

  std::string Start(uint64_t execution, uint64_t host_ns, uint64_t device_ns) const {
    return fmt::format(
        R"({{"event_type":"nc_exec_running","phase":"start","nc_idx":{},"tracking_id":{},)"
        R"("timestamp_ns":{},"data":{{"exec_id":{},"model_id":{},"nc_timestamp_ns":"{}"}}}})",
        core_, execution, host_ns, execution, model_, device_ns);
  }
  std::string Stop(uint64_t execution, uint64_t host_ns, uint64_t device_ns) const {
    return fmt::format(
        R"({{"event_type":"nc_exec_running","phase":"stop","nc_idx":{},"tracking_id":{},)"
        R"("timestamp_ns":{},"data":{{"nc_timestamp_ns":{}}}}})",
        core_, execution, host_ns, device_ns);
  }
  void Execute(uint64_t ns) {
    ++execution_;
    Show(1, Start(execution_, host_ns_, device_ns_) + "," +
                Stop(execution_, host_ns_ + ns, device_ns_ + ns));
    host_ns_ += ns;
    device_ns_ += ns;
  }
  void ExecuteTypically(size_t times = RunningMedian::kEnough) {
    for (size_t i = 0; i < times; ++i) Execute(kMillisecondNs);
  }

  uint32_t core_ = 0;
  uint64_t model_ = 10001;
  uint64_t execution_ = 0;
  uint64_t host_ns_ = 1'700'000'000'000'000'000;
  uint64_t device_ns_ = 5'000;
};

TEST_F(SlowExecutionTest, ReportsOnlyBeyondLimit) {
  ExecuteTypically();
  Execute(3 * kMillisecondNs);
  EXPECT_THAT(aggregator.told, IsEmpty());
  Execute(3 * kMillisecondNs + 1);
  ASSERT_THAT(aggregator.told, SizeIs(1));
  EXPECT_EQ(aggregator.told[0].cause,
            "i-1 pid 1 nc 0: execution 18 took 3000.0 us, 3.0 times its median of 1000.0 us");
}

TEST_F(SlowExecutionTest, ReportsNothingBeforeEnoughSamples) {
  ExecuteTypically(RunningMedian::kEnough - 1);
  Execute(100 * kMillisecondNs);
  EXPECT_THAT(aggregator.told, IsEmpty());
  Execute(100 * kMillisecondNs);
  EXPECT_THAT(aggregator.told, SizeIs(1));
}

TEST_F(SlowExecutionTest, AdaptsToLastingChange) {
  ExecuteTypically(RunningMedian::kWindow);
  for (size_t i = 0; i < RunningMedian::kWindow; ++i) {
    Execute(10 * kMillisecondNs);
    clock.AdvanceNs(kNsPerSecond);
  }
  EXPECT_EQ(aggregator.told.size(), RunningMedian::kWindow / 2);
}

TEST_F(SlowExecutionTest, EveryCoreAndModelHasAMedianOfItsOwn) {
  ExecuteTypically();
  model_ = 10002;
  for (size_t i = 0; i < RunningMedian::kEnough; ++i) Execute(50 * kMillisecondNs);
  core_ = 1;
  for (size_t i = 0; i < RunningMedian::kEnough; ++i) Execute(900 * kMillisecondNs);
  EXPECT_THAT(aggregator.told, IsEmpty());
  core_ = 0;
  model_ = 10001;
  Execute(50 * kMillisecondNs);
  EXPECT_THAT(aggregator.told, SizeIs(1));
}

TEST_F(SlowExecutionTest, TheDevicesClockCountsAndTheHostsWhereItMakesNoSense) {
  ExecuteTypically();
  host_ns_ -= 500 * kNsPerSecond;  // set back
  Execute(kMillisecondNs);
  Show(1, Start(100, host_ns_, 5) + "," + Stop(100, host_ns_ + 900 * kNsPerSecond, 6));
  EXPECT_THAT(aggregator.told, IsEmpty());  // set ahead meanwhile; the device says 1 ns
  Show(1, Start(101, host_ns_, 5) + "," + Stop(101, host_ns_ + 5 * kMillisecondNs, 4));
  ASSERT_THAT(aggregator.told, SizeIs(1));  // the counter restarted; the host says 5 ms
  clock.AdvanceNs(kNsPerSecond);
  Show(1, Start(102, host_ns_, 5) + "," + Stop(102, host_ns_ - 5, 4));  // neither
  Show(1, Start(103, 5, 5) + "," + Stop(103, UINT64_MAX, UINT64_MAX));  // absurd
  Show(1, Stop(104, host_ns_, 9'000'000'000));                          // without a start
  EXPECT_THAT(aggregator.told, SizeIs(1));
}

TEST_F(SlowExecutionTest, ReportsBeforeEnd) {
  ExecuteTypically();
  triggers.OnPolled(Worker(1), true);
  Show(1, Start(100, host_ns_, device_ns_));
  Pass(ExecutionMedians::kUnendedMinNs - kMillisecondNs);
  EXPECT_THAT(aggregator.told, IsEmpty());
  Pass(kNsPerSecond);
  ASSERT_THAT(aggregator.told, SizeIs(1));
  EXPECT_THAT(aggregator.told[0].cause, HasSubstr("execution 100 has not ended after 2"));
  Pass(60 * kNsPerSecond);
  EXPECT_THAT(aggregator.told, SizeIs(1));
}

TEST_F(SlowExecutionTest, DoesNotReportExecutionWithMissedEnd) {
  ExecuteTypically();
  Show(1, Start(100, host_ns_, device_ns_));
  Show(1, Start(101, host_ns_, device_ns_) + "," +
              Stop(101, host_ns_ + kMillisecondNs, device_ns_ + kMillisecondNs));
  Pass(10 * kNsPerSecond);
  EXPECT_THAT(aggregator.told, IsEmpty());
  Show(1, Start(102, host_ns_, device_ns_));
  Pass(10 * kNsPerSecond, {});  // nothing was read meanwhile
  EXPECT_THAT(aggregator.told, IsEmpty());
  triggers.OnTraceEdge(Worker(1));
  Pass(10 * kNsPerSecond);
  EXPECT_THAT(aggregator.told, IsEmpty());
}

TEST_F(SlowExecutionTest, HoldsNoMoreOpenOnesThanItsLimit) {
  ExecuteTypically();
  for (uint64_t i = 0; i < 1'000; ++i) Show(1, Start(100 + i, host_ns_, device_ns_));
  Show(1, Stop(100, host_ns_ + kNsPerSecond, device_ns_ + kNsPerSecond));  // forgotten
  EXPECT_THAT(aggregator.told, IsEmpty());
  Show(1, Stop(1'099, host_ns_ + kNsPerSecond, device_ns_ + kNsPerSecond));
  EXPECT_THAT(aggregator.told, SizeIs(1));
}

}  // namespace
}  // namespace neurontrace
