// SPDX-License-Identifier: Apache-2.0
// Goal: a watch is turned on with limits of cost and size that nobody has to think of, once, and is
// the only capture that `watch off` stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kWatchId[] = "01JA";

class WatchCommandTest : public CommandLineTest {
 protected:
  static v1::Capture Continuous(const char* id, const char* job, bool is_watch) {
    v1::Capture capture;
    capture.set_capture_id(id);
    capture.set_state(v1::CAPTURE_STATE_RECORDING);
    capture.set_started_realtime_ns(1);
    capture.set_server_realtime_ns(2);
    capture.mutable_spec()->set_mode(v1::CAPTURE_MODE_CONTINUOUS);
    capture.mutable_spec()->set_job(job);
    capture.mutable_spec()->set_watch(is_watch);
    capture.add_workers()->set_state(v1::CAPTURE_WORKER_STATE_RECORDING);
    return capture;
  }
};

TEST_F(WatchCommandTest, HasABudgetAndKeepsTenMinutes) {
  service_.capture = Continuous(kWatchId, "llama", true);
  EXPECT_EQ(RunCli({"watch", "on", "--job", "llama"}), kExitDone);
  EXPECT_TRUE(service_.spec.watch());
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(service_.spec.name(), "watch");
  EXPECT_EQ(service_.spec.job(), "llama");
  EXPECT_EQ(service_.spec.retention_ns(), 600'000'000'000u);
  EXPECT_EQ(service_.spec.budget_core_ppm(), 20'000u);
  EXPECT_FALSE(service_.spec.include_framework());
  EXPECT_EQ(service_.spec.event_types_size(), 0) << "the aggregator knows which the runtimes have";
  EXPECT_THAT(out_, HasSubstr("neurontrace why --live"));
  EXPECT_EQ(RunCli({"watch", "on", "--keep", "1m", "--budget-core", "5%"}), kExitDone);
  EXPECT_EQ(service_.spec.retention_ns(), 60'000'000'000u);
  EXPECT_EQ(service_.spec.budget_core_ppm(), 50'000u);
  EXPECT_EQ(RunCli({"watch", "on", "--keep", "0s"}), kExitUsage);
}

TEST_F(WatchCommandTest, ReportsAWatchThatIsOn) {
  service_.stored = {Continuous(kWatchId, "llama", true)};
  EXPECT_EQ(RunCli({"watch", "on", "--job", "llama"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("watch 01JA is already on"));
  EXPECT_FALSE(service_.spec.watch()) << "nothing was started";
  service_.capture = Continuous("01JB", "bert", true);
  EXPECT_EQ(RunCli({"watch", "on", "--job", "bert"}), kExitDone);
  EXPECT_TRUE(service_.spec.watch());
}

TEST_F(WatchCommandTest, ShowsAndTurnsOffWatchesOnly) {
  service_.stored = {Continuous("01JC", "llama", false)};
  EXPECT_EQ(RunCli({"watch", "status"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("off; turn it on"));
  EXPECT_EQ(RunCli({"watch", "off"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("no watch is on"));
  service_.stored = {Continuous(kWatchId, "llama", true), Continuous("01JC", "bert", false)};
  EXPECT_EQ(RunCli({"watch", "status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("1 recording"));
  service_.capture = service_.stored.front();
  EXPECT_EQ(RunCli({"watch", "off"}), kExitDone);
  EXPECT_EQ(service_.stopped, kWatchId);
  service_.stored.push_back(Continuous("01JD", "other", true));
  EXPECT_EQ(RunCli({"watch", "off"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("2 watches are on"));
}

}  // namespace
}  // namespace neurontrace::cli
