// SPDX-License-Identifier: Apache-2.0
// A job has several names, and a capture that was asked for by any of them is not one of all jobs.
#include "cli/selection_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::CaptureSpec SpecOfFact(const char* key, const char* value) {
  v1::CaptureSpec spec;
  v1::KeyValue& fact = *spec.add_job_facts();
  fact.set_key(key);
  fact.set_value(value);
  return spec;
}

TEST(Selection, DescribesEveryCondition) {
  EXPECT_EQ(FormatSelection({}), "");
  EXPECT_TRUE(IsOfEveryJob({}));
  v1::CaptureSpec spec = SpecOfFact("slurm", "4711");
  EXPECT_FALSE(IsOfEveryJob(spec));
  spec.set_job("llama");
  v1::GidRange& range = *spec.add_worker_gids();
  range.set_last(7);
  spec.add_instance_ids("i-a");
  spec.add_instance_ids("i-b");
  spec.add_neuron_cores(2);
  EXPECT_EQ(FormatSelection(spec), "job llama, slurm=4711, ranks 0-7, instances i-a,i-b, cores 2");
  EXPECT_EQ(FormatJobs(spec), "llama slurm=4711");
  EXPECT_EQ(FormatJobs(SpecOfFact("pod", "llama-0")), "");
}

TEST(Selection, KnowsTheNamesOfItsJob) {
  const v1::CaptureSpec spec = SpecOfFact("slurm", "4711");
  EXPECT_TRUE(NamesJob(spec, "4711"));
  EXPECT_TRUE(NamesJob(spec, "slurm=4711"));
  EXPECT_FALSE(NamesJob(spec, "llama"));
  EXPECT_FALSE(NamesJob(SpecOfFact("pod", "llama"), "llama"));
  EXPECT_FALSE(NamesJob({}, "llama"));
}

class SelectionCommandTest : public CommandLineTest {
 protected:
  // One that continues, of this Slurm job.
  void StoreOne(v1::CaptureMode mode) {
    service_.capture.set_state(v1::CAPTURE_STATE_RECORDING);
    service_.capture.set_started_realtime_ns(1);
    service_.capture.set_server_realtime_ns(2);
    *service_.capture.mutable_spec() = SpecOfFact("slurm", "4711");
    service_.capture.mutable_spec()->set_mode(mode);
    service_.stored = {service_.capture};
  }
};

TEST_F(SelectionCommandTest, AFlightRecorderOfAnotherJobIsNotTurnedOff) {
  StoreOne(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  EXPECT_EQ(RunCli({"flight-recorder", "status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("workers          slurm=4711\n"));
  EXPECT_EQ(RunCli({"flight-recorder", "off", "--job", "llama"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("no flight recorder covers only job llama"));
  EXPECT_THAT(err_, HasSubstr(std::string(kCaptureId) + "  slurm=4711"));
  service_.stored[0].mutable_spec()->clear_job_facts();
  EXPECT_EQ(RunCli({"flight-recorder", "off", "--job", "llama"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(std::string(kCaptureId) + "  all jobs"));
  EXPECT_EQ(service_.stopped, "");
  StoreOne(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  EXPECT_EQ(RunCli({"flight-recorder", "off", "--job", "4711"}), kExitDone);
  EXPECT_EQ(service_.stopped, kCaptureId);
}

TEST_F(SelectionCommandTest, AContinuousCaptureOfAnotherJobIsNotExported) {
  const std::string path = testing::TempDir() + "/cli_selection.json";
  StoreOne(v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(RunCli({"export", "--continuous", "--job", "llama", "-o", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("(there is one for slurm=4711)"));
  EXPECT_EQ(RunCli({"export", "--continuous", "--job", "slurm=4711", "-o", path.c_str()}),
            kExitDone);
}

TEST_F(SelectionCommandTest, CapturesAreListedByAnyNameOfTheirJob) {
  StoreOne(v1::CAPTURE_MODE_CONTINUOUS);
  for (const char* const job : {"4711", "slurm=4711"}) {
    EXPECT_EQ(RunCli({"captures", "list", "--job", job}), kExitDone);
    EXPECT_THAT(out_, HasSubstr(kCaptureId));
    EXPECT_THAT(out_, HasSubstr("slurm=4711"));
  }
  EXPECT_EQ(RunCli({"captures", "list", "--job", "llama"}), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr(kCaptureId)));
  EXPECT_EQ(RunCli({"captures", "show", kCaptureId}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("workers     slurm=4711\n"));
}

TEST_F(SelectionCommandTest, JobFilterDoesNotSuggestLoadingTap) {
  service_.has_workers = false;
  EXPECT_EQ(RunCli({"workers", "--job", "typo"}), kExitDone);
  EXPECT_EQ(out_,
            "No worker of job typo; neurontrace workers --facts lists every worker and the facts "
            "that select it.\n");
  EXPECT_EQ(RunCli({"workers"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("LD_PRELOAD"));
}

TEST_F(SelectionCommandTest, AFlightRecorderWithoutAWorkerPromisesNothing) {
  StoreOne(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  service_.capture.clear_workers();
  service_.capture.clear_events();
  service_.capture.add_warnings("no worker matches yet; there are 4 workers of job llama");
  EXPECT_EQ(RunCli({"flight-recorder", "on", "--job", "slurm=4711"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("warning: no worker matches yet; there are 4 workers"));
  EXPECT_THAT(out_, HasSubstr("No worker is selected yet"));
  EXPECT_THAT(out_, Not(HasSubstr("capture --last")));
}

}  // namespace
}  // namespace neurontrace::cli
