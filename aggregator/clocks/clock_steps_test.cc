// SPDX-License-Identifier: Apache-2.0
// Somebody sets the machine's clock while the aggregator runs, and while it is down.
#include "aggregator/clocks/clock_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "aggregator/store/full_disk.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/steady_clock.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kStepHourNs = 3'600'000'000'000;
constexpr int64_t kStepDayNs = 24 * kStepHourNs;

class ClockStepsTest : public ::testing::Test {
 protected:
  // A new process on the same store and machine.
  void Start(bool is_recording, const std::string& boot = "boot") {
    steps_ = nullptr;
    registry_ = std::make_unique<prometheus::Registry>();
    clock_ = std::make_unique<SteadyClock>(system_);
    steps_ = std::make_unique<ClockSteps>(*store_, *clock_, boot, *registry_);
    news_ = steps_->Begin(is_recording);
  }
  double Gauge() {
    return prometheus::BuildGauge()
        .Name("neurontrace_aggregator_clock_step_seconds")
        .Register(*registry_)
        .Add({})
        .Value();
  }

  FakeClock system_;
  std::unique_ptr<Store> store_ = Store::Open("/store", {.in_memory = true}).value();
  std::unique_ptr<prometheus::Registry> registry_;
  std::unique_ptr<SteadyClock> clock_;
  std::unique_ptr<ClockSteps> steps_;
  std::string news_;
};

TEST_F(ClockStepsTest, ReportsClockStepAndRecoveryOnce) {
  Start(false);
  EXPECT_THAT(news_, IsEmpty());
  EXPECT_EQ(steps_->Check(), std::nullopt);
  system_.StepRealtimeNs(-2 * kStepHourNs);
  EXPECT_THAT(steps_->Check().value_or(""), HasSubstr("was set back by 7200.0 s"));
  EXPECT_EQ(Gauge(), -7'200.0);
  system_.AdvanceNs(1'000'000'000);
  EXPECT_EQ(steps_->Check(), std::nullopt);
  system_.StepRealtimeNs(2 * kStepHourNs);
  EXPECT_THAT(steps_->Check().value_or(""), HasSubstr("is back at the time"));
  EXPECT_EQ(Gauge(), 0.0);
}

TEST_F(ClockStepsTest, ReportsSlowCorrectionOfSmallStep) {
  Start(false);
  system_.StepRealtimeNs(-30'000'000'000);
  EXPECT_THAT(steps_->Check().value_or(""),
              HasSubstr("was set back by 30.0 s: the aggregator approaches"));
  for (int s = 0; s < 20'000; ++s) {
    system_.AdvanceNs(1'000'000'000);
    EXPECT_EQ(steps_->Check(), std::nullopt);
  }
  const uint64_t before_ns = clock_->RealtimeNs();
  Start(true);  // a capture is recorded: the earlier time continues
  EXPECT_NEAR(static_cast<double>(clock_->RealtimeNs()), static_cast<double>(before_ns), 2e9);
  EXPECT_NE(clock_->RealtimeNs(), system_.RealtimeNs());
  Start(false);
  EXPECT_EQ(clock_->RealtimeNs(), system_.RealtimeNs());
  EXPECT_THAT(news_, IsEmpty());
}

TEST_F(ClockStepsTest, ALaterProcessContinuesTheTimeOfCapturesThatAreRecorded) {
  Start(false);
  const uint64_t before_ns = clock_->RealtimeNs();
  system_.StepRealtimeNs(10 * kStepDayNs);
  Start(true);
  EXPECT_THAT(news_, HasSubstr("keep the previous time"));
  EXPECT_EQ(clock_->RealtimeNs(), before_ns);
  EXPECT_EQ(steps_->ForwardSince(before_ns), 0u);
}

TEST_F(ClockStepsTest, ALaterProcessTakesOverTheNewTimeAndWhatIsOlderExpiresLater) {
  Start(false);
  const uint64_t before_ns = clock_->RealtimeNs();
  system_.StepRealtimeNs(10 * kStepDayNs);
  system_.AdvanceNs(1'000'000'000);
  for (int start = 0; start < 3; ++start) {
    Start(false);
    EXPECT_EQ(news_.empty(), start > 0) << news_;
    EXPECT_EQ(clock_->RealtimeNs(), system_.RealtimeNs());
    EXPECT_EQ(steps_->ForwardSince(before_ns), static_cast<uint64_t>(10 * kStepDayNs));
    EXPECT_EQ(steps_->ForwardSince(clock_->RealtimeNs()), 0u);
  }
  // Back: what is older is kept longer, by its stamps alone.
  system_.StepRealtimeNs(-10 * kStepDayNs);
  Start(false);
  EXPECT_EQ(clock_->RealtimeNs(), system_.RealtimeNs());
}

TEST_F(ClockStepsTest, AnOffsetThatCouldNotBeStoredIsStoredLater) {
  const TemporaryDirectory directory;
  const auto disk = std::make_shared<FullDisk>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  store_ = Store::Open(directory.path(), {.env = env.get()}).value();
  Start(false);
  const uint64_t before_ns = clock_->RealtimeNs();
  system_.StepRealtimeNs(10 * kStepDayNs);
  disk->SetRoom(0);
  EXPECT_THAT(steps_->Check().value_or(""), HasSubstr("was set forward"));
  disk->SetUnlimited();
  EXPECT_EQ(steps_->Check(), std::nullopt);
  Start(true);
  EXPECT_EQ(clock_->RealtimeNs(), before_ns);
  steps_ = nullptr;
  store_ = nullptr;  // before its disk
}

TEST_F(ClockStepsTest, AfterAStartOfTheMachineNothingIsKnown) {
  Start(false);
  system_.StepRealtimeNs(10 * kStepDayNs);
  Start(true, "another boot");
  EXPECT_THAT(news_, IsEmpty());
  EXPECT_EQ(clock_->RealtimeNs(), system_.RealtimeNs());
  Start(true, "");  // where it cannot be read
  EXPECT_THAT(news_, IsEmpty());
}

TEST(ClockRecord, IsDecodedAsItWasEncodedAndNonsenseIsEmpty) {
  const ClockRecord record{.boot = "b/1,2", .offset_ns = -5, .steps = {{7, 8}, {9, 10}}};
  EXPECT_EQ(DecodeClockRecord(EncodeClockRecord(record)), record);
  EXPECT_EQ(DecodeClockRecord(EncodeClockRecord({})), ClockRecord());
  for (const char* const text : {"", "\n", "b 1\n", "b 1\n2 3\n"}) {
    EXPECT_EQ(DecodeClockRecord(text), ClockRecord()) << text;
  }
}

TEST(ClockRecord, KeepsFewSteps) {
  ClockRecord record;
  for (uint64_t i = 1; i <= 40; ++i) record.AddStep({i, 1});
  EXPECT_EQ(record.steps.size(), ClockRecord::kStepsMax);
  EXPECT_EQ(record.ForwardSince(0), 40u);
  EXPECT_EQ(record.ForwardSince(40), 1u);
  EXPECT_EQ(record.ForwardSince(41), 0u);
  record.AddStep({50, UINT64_MAX});
  EXPECT_EQ(record.ForwardSince(0), UINT64_MAX);
}

}  // namespace
}  // namespace neurontrace
