// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/source/framework/on_demand/recorder_fixture.h"
#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using State = FrameworkTraceState;

class KinetoRecorderTest : public RecorderFixture {
 protected:
  KinetoRecorderTest() {
    for (const uint32_t pid : {40u, 41u, 42u, 43u}) {
      proc_.Put({.pid = pid, .start_time_ticks = pid * 10});
    }
  }
  std::string Ask(uint32_t pid, bool takes = true) {
    return recorder_.OnRequest({.pid = pid, .uid = 0, .address = "/k/c"}, takes);
  }
  std::string FileOf(uint32_t pid) const {
    return fmt::format("neurontrace-{}-{}_7.pt.trace.json", capture_.ToString(), pid);
  }

  FrameworkRecorder& recorder() override { return recorder_; }

  KinetoRecorder recorder_{"/data/traces", ProcFiles(proc_.root()), clock_, metrics_};
};

TEST_F(KinetoRecorderTest, AsksForCpuOperatorsFromThePlannedMoment) {
  EXPECT_THAT(Ask(40), IsEmpty()) << "nothing is asked for yet";
  FrameworkOrder order = Order({Worker(40)});
  order.begin_realtime_ns = 1'700'000'009'000'000'001;
  recorder_.Begin(order);
  EXPECT_EQ(StateOf(40), State::kWaiting);
  EXPECT_EQ(Ask(40),
            fmt::format("PROFILE_START_TIME=1700000009001\n"
                        "ACTIVITIES_WARMUP_PERIOD_SECS=0\n"
                        "ACTIVITIES_DURATION_MSECS=20000\n"
                        "ACTIVITIES_LOG_FILE=/data/traces/neurontrace-{0}-40.pt.trace.json\n"
                        "ACTIVITY_TYPES=cpu_op,user_annotation\n"
                        "REQUEST_TRACE_ID={0}\n",
                        capture_.ToString()));
  EXPECT_EQ(StateOf(40), State::kAsked);
  EXPECT_THAT(Ask(40), IsEmpty()) << "once";
}

TEST_F(KinetoRecorderTest, AsksForStepsAndStacks) {
  FrameworkOrder order = Order({Worker(40), Worker(41)});
  order.steps = 5;
  order.first_step = 300;
  order.with_stacks = true;
  recorder_.Begin(order);
  const std::string config = Ask(40);
  EXPECT_THAT(config,
              HasSubstr("PROFILE_START_ITERATION=300\nPROFILE_START_ITERATION_ROUNDUP=1\n"));
  EXPECT_THAT(config, HasSubstr("ACTIVITIES_ITERATIONS=5\n"));
  EXPECT_THAT(config, HasSubstr("ACTIVITY_TYPES=cpu_op,user_annotation,python_function\n"));
  EXPECT_THAT(config, HasSubstr("PROFILE_WITH_STACK=true\n"));
  EXPECT_THAT(config, Not(HasSubstr("PROFILE_START_TIME")));
  // Steps have no moment that would pass.
  Pass(12 * kSecondNs);
  EXPECT_THAT(Ask(41), HasSubstr("PROFILE_START_ITERATION=300\n"));
}

TEST_F(KinetoRecorderTest, AWorkerThatTakesNoMoreOrdersRecordsAndItsFileIsSeen) {
  recorder_.Begin(Order({Worker(40)}));
  ASSERT_THAT(Ask(40), Not(IsEmpty()));
  Pass(5 * kSecondNs);
  Ask(40, /*takes=*/false);
  EXPECT_EQ(StateOf(40), State::kRecording);
  recorder_.OnFile(capture_, "neurontrace-" + capture_.ToString() + "-4_7.pt.trace.json");
  EXPECT_EQ(StateOf(40), State::kRecording) << "that is the file of process 4";
  recorder_.OnFile(capture_, "sub/" + FileOf(40));
  EXPECT_EQ(StateOf(40), State::kFileSeen);
}

TEST_F(KinetoRecorderTest, AWorkerWhoseProfilerIsInUseIsBusy) {
  recorder_.Begin(Order({Worker(40)}));
  EXPECT_THAT(Ask(40, false), IsEmpty());
  EXPECT_EQ(StateOf(40), State::kWaiting);
  Pass(5 * kSecondNs);
  EXPECT_THAT(Ask(40, false), IsEmpty());
  Pass(3 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kBusy);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("in use"));
}

TEST_F(KinetoRecorderTest, KnowsByItsRhythmWhoCannotMakeTheMoment) {
  Ask(40);
  Pass(5 * kSecondNs);
  Ask(40);
  Pass(kSecondNs);
  recorder_.Begin(Order({Worker(40)}, 3 * kSecondNs));
  EXPECT_EQ(StateOf(40), State::kWaiting);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("after the planned moment"));
  Pass(3 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kTooLate);
  EXPECT_THAT(Ask(40), IsEmpty());
}

TEST_F(KinetoRecorderTest, AnOrderWithoutAMomentAheadReportsTheReason) {
  FrameworkOrder order = Order({Worker(40)}, 0);
  order.is_planned = false;
  Ask(40);
  recorder_.Begin(order);
  EXPECT_THAT(Ask(40), IsEmpty());
  Pass(kSecondNs);
  EXPECT_EQ(StateOf(40), State::kTooLate);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("clock was not known yet"));
}

TEST_F(KinetoRecorderTest, AWorkerThatNeverAskedDoesNotListen) {
  recorder_.Begin(Order({Worker(40)}));
  Pass(8 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kNotListening);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("doctor"));
}

TEST_F(KinetoRecorderTest, AFileIsWaitedForAfterTheEndAndThenNoLonger) {
  recorder_.Begin(Order({Worker(40)}));
  Ask(40);
  for (int i = 0; i < 3; ++i) {
    Pass(9 * kSecondNs);
    Ask(40);
  }
  recorder_.Stop(capture_);
  Ask(40);
  Pass(15 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kAsked);
  Ask(40);
  Pass(limits::kFrameworkFileWaitNs - 15 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kNotSeen);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("KINETO_ONDEMAND_TRACE_DIR"));
}

TEST_F(KinetoRecorderTest, ACaptureThatIsStoppedEarlyDoesNotWaitForItsTraces) {
  recorder_.Begin(Order({Worker(40), Worker(41), Worker(42)}));
  Ask(40);
  Pass(kSecondNs);
  recorder_.OnRequest({.pid = 41, .uid = 0, .address = "/k/d"}, false);
  recorder_.Stop(capture_);
  EXPECT_EQ(StateOf(40), State::kNotSeen);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("cannot be stopped early"));
  EXPECT_EQ(StateOf(41), State::kBusy);
  EXPECT_EQ(StateOf(42), State::kNotListening);
  EXPECT_THAT(Ask(42), IsEmpty()) << "nobody else is asked";
}

TEST_F(KinetoRecorderTest, AWorkerThatEndsIsNotWaitedFor) {
  recorder_.Begin(Order({Worker(40)}));
  Ask(40);
  Pass(limits::kKinetoSilenceNs + 1);
  EXPECT_EQ(StateOf(40), State::kNotSeen);
  EXPECT_THAT(TraceOf(40).detail, HasSubstr("ended"));
  EXPECT_EQ(recorder_.clients(), 0u);
}

TEST_F(KinetoRecorderTest, AnOrderThatWasNotDeliveredIsGivenAgain) {
  recorder_.Begin(Order({Worker(40)}));
  ASSERT_THAT(Ask(40), Not(IsEmpty()));
  recorder_.OnNotDelivered({.pid = 40, .uid = 0, .address = "/k/c"});
  EXPECT_EQ(StateOf(40), State::kWaiting);
  Pass(5 * kSecondNs);
  EXPECT_THAT(Ask(40), Not(IsEmpty()));
}

TEST_F(KinetoRecorderTest, AProcessThatReusedThePidIsNotTheWorker) {
  recorder_.Begin(Order({Worker(40)}));
  proc_.Put({.pid = 40, .start_time_ticks = 999});
  EXPECT_THAT(Ask(40), IsEmpty());
  Pass(8 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kNotListening);
}

TEST_F(KinetoRecorderTest, AProcessThatTheKernelDoesNotShowGetsNoOrders) {
  recorder_.Begin(Order({{.instance_id = "i-1", .boot_id = "boot"}}));
  EXPECT_THAT(Ask(0), IsEmpty());
  EXPECT_EQ(recorder_.clients(), 0u);
  EXPECT_EQ(metrics_.kineto_clients_refused, 1u);
}

TEST_F(KinetoRecorderTest, TheSecondOfTwoCapturesFindsTheWorkerBusy) {
  recorder_.Begin(Order({Worker(40)}));
  ASSERT_THAT(Ask(40), Not(IsEmpty()));
  const CaptureId first = capture_;
  capture_ = CaptureId::Make(clock_, random_);
  recorder_.Begin(Order({Worker(40)}));
  EXPECT_THAT(Ask(40), IsEmpty());
  Pass(8 * kSecondNs);
  EXPECT_EQ(StateOf(40), State::kBusy);
  EXPECT_TRUE(recorder_.IsFileOf(capture_, "neurontrace-" + capture_.ToString() + "-40_1.x"));
  EXPECT_FALSE(recorder_.IsFileOf(capture_, "neurontrace-" + first.ToString() + "-40_1.x"));
}

TEST_F(KinetoRecorderTest, ClientsBeyondTheLimitAreCountedAndGetNoOrders) {
  for (uint32_t i = 0; i < limits::kKinetoClientsMax; ++i) {
    proc_.Put({.pid = 1000 + i, .start_time_ticks = 5});
    Ask(1000 + i);
  }
  recorder_.Begin(Order({Worker(40)}));
  EXPECT_THAT(Ask(40), IsEmpty());
  EXPECT_EQ(recorder_.clients(), limits::kKinetoClientsMax);
  EXPECT_EQ(metrics_.kineto_clients_refused, 1u);
}

}  // namespace
}  // namespace neurontrace
