// SPDX-License-Identifier: Apache-2.0
// Goal: `why` asks for the capture, the window and the job that were typed, and its exit code is
// that of the answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_test_support.h"
#include "lib/base/temporary_directory.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class ExplainCommandTest : public CommandLineTest {
 protected:
  ExplainCommandTest() {
    service_.insight.set_cores(8);
    service_.insight.set_cores_judged(8);
    service_.insight.set_text("Nobody to name: 8 of 8 cores judged");
  }
};

TEST_F(ExplainCommandTest, AsksAboutTheWholeCapture) {
  EXPECT_EQ(RunCli({"why", kCaptureId}), kExitDone) << err_;
  EXPECT_EQ(out_, "Nobody to name: 8 of 8 cores judged\n");
  EXPECT_EQ(service_.explain_request.capture_id(), kCaptureId);
  EXPECT_EQ(service_.explain_request.begin_ns(), 0u);
  EXPECT_EQ(service_.explain_request.end_ns(), 0u);
}

TEST_F(ExplainCommandTest, AsksForTheWindowAndTheJob) {
  for (const auto& arguments :
       {std::vector<const char*>{"why", kCaptureId, "--window", "1.5s..1750000000000000000",
                                 "--job", "llama"},
        std::vector<const char*>{"why", kCaptureId, "--from", "1.5s", "--to", "1750000000000000000",
                                 "--job", "llama"}}) {
    EXPECT_EQ(RunCli(arguments), kExitDone) << err_;
    EXPECT_EQ(service_.explain_request.begin_ns(), 1'500'000'000u);
    EXPECT_TRUE(service_.explain_request.begin_is_relative());
    EXPECT_EQ(service_.explain_request.end_ns(), 1'750'000'000'000'000'000u);
    EXPECT_FALSE(service_.explain_request.end_is_relative());
    EXPECT_EQ(service_.explain_request.job(), "llama");
  }
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "-5m.."}), kExitDone) << err_;
  EXPECT_TRUE(service_.explain_request.is_before_now());
}

TEST_F(ExplainCommandTest, AnAnswerWithoutItsReportIsAFailure) {
  service_.explain_breaks = true;
  EXPECT_EQ(RunCli({"why", kCaptureId}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("ended its answer too early"));
}

TEST_F(ExplainCommandTest, PrintsJson) {
  for (const auto& arguments : {std::vector<const char*>{"why", kCaptureId, "--json"},
                                std::vector<const char*>{"--output", "json", "why", kCaptureId}}) {
    EXPECT_EQ(RunCli(arguments), kExitDone) << err_;
    EXPECT_THAT(out_, HasSubstr("\"cores_judged\": 8"));
    EXPECT_THAT(out_, HasSubstr("\"verdicts\": []"));
  }
}

TEST_F(ExplainCommandTest, ARefusedPartIsAnIncompleteAnswer) {
  service_.insight.add_refusals()->set_text("REFUSED losses: rank 3: 4 events were lost");
  EXPECT_EQ(RunCli({"why", kCaptureId}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("REFUSED losses: rank 3"));
}

TEST_F(ExplainCommandTest, LiveAsksTheWatch) {
  EXPECT_EQ(RunCli({"why", "--live", "--job", "llama"}), kExitDone) << err_;
  EXPECT_EQ(service_.explain_request.capture_id(), "");
  EXPECT_EQ(service_.explain_request.job(), "llama");
  service_.explain_status = {grpc::StatusCode::FAILED_PRECONDITION,
                             "no watch is on; start it with `neurontrace watch on`"};
  EXPECT_EQ(RunCli({"why", "--live"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("neurontrace watch on"));
  EXPECT_EQ(RunCli({"why", "--watch"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("neurontrace watch on"));
}

TEST_F(ExplainCommandTest, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(RunCli({"why"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--live"));
  EXPECT_EQ(RunCli({"why", kCaptureId, "--live"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", "--watch", "--window", "1s..2s"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "1s"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "2s..1s"}), kExitUsage);
  // A request's 0 is an open end: this would be judged to the end of the capture.
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "10s..0s"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "..0ms"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", kCaptureId, "--window", "1s..2s", "--from", "1s"}), kExitUsage);
  EXPECT_EQ(RunCli({"why", "01NONE"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("01NONE"));
}

TEST_F(ExplainCommandTest, RefusesWhatIsNoStore) {
  const TemporaryDirectory empty;
  EXPECT_EQ(RunCli({"why", kCaptureId, "--store", empty.path().c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("there is no store in"));
}

}  // namespace
}  // namespace neurontrace::cli
