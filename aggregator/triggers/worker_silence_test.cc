// SPDX-License-Identifier: Apache-2.0
// The goal: a worker that falls silent while others of its job do not is reported once, and nobody
// else is. Reports go in as agents send them; time is passed in.
#include "aggregator/triggers/worker_silence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/triggers/trigger_test_support.h"
#include "lib/trace/trigger_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
constexpr uint64_t kSecond = FakeTriggerCaptures::kSecondNs;

class WorkerSilenceTest : public testing::Test {
 protected:
  WorkerSilenceTest() { SetRule("", 4 * kSecond); }
  void SetRule(const std::string& job, uint64_t silent_ns) {
    TriggerRule rule = FakeTriggerCaptures::Rule("silent", TriggerKind::kSilentCore);
    rule.job = job;
    rule.silent_ns = silent_ns;
    silence_.SetRules({FakeTriggerCaptures::Rule("alert"), rule});
  }
  void Report(uint32_t pid, uint64_t events, const std::string& job = "j",
              CaptureWorkerState state = CaptureWorkerState::kRecording) {
    silence_.OnStatus({.capture_id = FakeTriggerCaptures::Id(1),
                       .worker = {.instance_id = "i-1", .pid = pid},
                       .state = state,
                       .events_read = events},
                      job, now_ns_);
  }
  std::vector<TriggerFired> Judge() {
    return silence_.Judge(now_ns_, [this](const WorkerIdentity&) { return reporting_; });
  }
  // Worker 2 continues, and it is judged every half second.
  std::vector<TriggerFired> Pass(uint64_t ns) {
    std::vector<TriggerFired> all;
    const uint64_t end_ns = now_ns_ + ns;
    while (now_ns_ < end_ns) {
      now_ns_ += std::min(end_ns - now_ns_, kSecond / 2);
      if (busy_) Report(2, ++events_);
      for (TriggerFired& fired : Judge()) all.push_back(std::move(fired));
    }
    return all;
  }

  uint64_t now_ns_ = 100 * kSecond;
  uint64_t events_ = 1;
  bool reporting_ = true;
  bool busy_ = true;
  WorkerSilence silence_;
};

TEST_F(WorkerSilenceTest, ReportsSilentWorkerOnce) {
  Report(1, 10);
  Report(2, 1);
  EXPECT_THAT(Pass(4 * kSecond - 1), IsEmpty());
  const auto fired = Pass(1);
  ASSERT_THAT(fired, SizeIs(1));
  EXPECT_EQ(fired[0].rule, "silent");
  EXPECT_EQ(fired[0].worker.pid, 1u);
  EXPECT_EQ(fired[0].job, "j");
  EXPECT_THAT(fired[0].cause, HasSubstr("none of its cores has had an event for 4.0 s"));
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
  Report(1, 11);
  EXPECT_THAT(Pass(4 * kSecond), SizeIs(1));
}

TEST_F(WorkerSilenceTest, ReportsNobodyIfAllAreSilent) {
  Report(1, 10);
  Report(2, 1);
  busy_ = false;
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
}

TEST_F(WorkerSilenceTest, KnowsPeersByTheirJob) {
  Report(1, 10, "another");
  Report(2, 1);
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
}

TEST_F(WorkerSilenceTest, ConsidersOnlyJobOfRule) {
  SetRule("another", 4 * kSecond);
  Report(1, 10);
  Report(2, 1);
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
}

TEST_F(WorkerSilenceTest, ConsidersOnlyRecordingWorkersWithEvents) {
  Report(1, 0);
  Report(3, 10, "j", CaptureWorkerState::kSuspended);
  Report(4, 10);
  Report(4, 10, "j", CaptureWorkerState::kComplete);
  Report(2, 1);
  EXPECT_EQ(silence_.watched(), 1u);
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
}

TEST_F(WorkerSilenceTest, IgnoresWorkersOfDisconnectedAgents) {
  Report(1, 10);
  Report(2, 1);
  Pass(3 * kSecond);
  reporting_ = false;
  EXPECT_THAT(Pass(60 * kSecond), IsEmpty());
  reporting_ = true;
  EXPECT_THAT(Pass(kSecond / 2), IsEmpty());
  EXPECT_THAT(Pass(kSecond), SizeIs(1));
}

TEST_F(WorkerSilenceTest, IgnoresSilenceDuringOwnPause) {
  Report(1, 10);
  Report(2, 1);
  Pass(kSecond);
  now_ns_ += 600 * kSecond;
  EXPECT_THAT(Judge(), IsEmpty());
}

TEST_F(WorkerSilenceTest, ForgetsCapturesThatAreOverAndStopsAtItsLimit) {
  Report(1, 10);
  silence_.KeepOnly([](const CaptureId&) { return false; });
  EXPECT_EQ(silence_.watched(), 0u);
  for (uint32_t pid = 0; pid <= limits::kTriggerWorkersWatchedMax; ++pid) Report(pid, 1);
  EXPECT_EQ(silence_.watched(), limits::kTriggerWorkersWatchedMax);
  EXPECT_EQ(silence_.not_watched(), 1u);
  silence_.SetRules({});
  EXPECT_EQ(silence_.watched(), 0u);
}

}  // namespace
}  // namespace neurontrace
