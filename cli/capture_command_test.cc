// SPDX-License-Identifier: Apache-2.0
// The commands that make captures and follow them: what is asked of the service, what is said, and
// the exit codes.
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "cli/command_test_support.h"
#include "lib/trace/trigger_rule.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using CaptureCommandTest = CommandLineTest;

v1::CaptureWorkerStatus& AddRefused(v1::Capture& capture, v1::CaptureObstacle obstacle) {
  v1::CaptureWorkerStatus& worker = *capture.add_workers();
  worker.mutable_worker()->set_instance_id("i-b");
  worker.mutable_worker()->set_pid(43);
  worker.set_state(v1::CAPTURE_WORKER_STATE_REFUSED);
  worker.set_obstacle(obstacle);
  return worker;
}

v1::Capture Standing(const char* id, v1::CaptureMode mode, const char* job, uint64_t started_ns) {
  v1::Capture capture;
  capture.set_capture_id(id);
  capture.set_state(v1::CAPTURE_STATE_RECORDING);
  capture.set_started_realtime_ns(started_ns);
  capture.set_server_realtime_ns(started_ns + 1);
  capture.mutable_spec()->set_mode(mode);
  capture.mutable_spec()->set_job(job);
  return capture;
}

TEST_F(CaptureCommandTest, SendsEveryOption) {
  EXPECT_EQ(
      RunCli(
          {"capture",  "--job",         "llama",   "--job",          "slurm=4711", "--namespace",
           "train",    "--pod",         "llama-0", "--label",        "tier=gold",  "--worker-gid",
           "0-7,64",   "--duration",    "30s",     "--at-execution", "4711",       "--executions",
           "20",       "--max-size",    "2GB",     "--require",      "all",        "--tag",
           "ticket=1", "--keep-for",    "7d",      "--budget-core",  "2%",         "--budget-rate",
           "10MB/s",   "--ring-events", "4096",    "--name",         "night"}),
      kExitDone);
  const v1::CaptureSpec& spec = service_.spec;
  EXPECT_EQ(spec.job(), "llama");
  EXPECT_EQ(spec.job_facts_size(), 4);
  EXPECT_EQ(spec.worker_gids_size(), 2);
  EXPECT_EQ(spec.at_execution(), 4711u);
  EXPECT_EQ(spec.executions(), 20u);
  EXPECT_EQ(spec.bytes_max(), 2'000'000'000u);
  EXPECT_EQ(spec.require_percent(), 100u);
  EXPECT_EQ(spec.labels(0).key(), "ticket");
  EXPECT_EQ(spec.retention_ns(), 7 * 86'400'000'000'000u);
  EXPECT_EQ(spec.budget_core_ppm(), 20'000u);
  EXPECT_EQ(spec.budget_bytes_per_second(), 10'000'000u);
  EXPECT_EQ(spec.ring_events_per_core(), 4096u);
  EXPECT_EQ(spec.name(), "night");
  EXPECT_EQ(spec.mode(), v1::CAPTURE_MODE_STREAM);
}

TEST_F(CaptureCommandTest, ReportsOmittedEvents) {
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitDone);
  EXPECT_THAT(err_, HasSubstr("omitting allocation events; --all-events includes them\n"));
  EXPECT_EQ(RunCli({"capture", "--duration", "1s", "--all-events"}), kExitDone);
  EXPECT_TRUE(service_.spec.all_events());
  EXPECT_THAT(err_, Not(HasSubstr("omitting")));
  EXPECT_EQ(RunCli({"capture", "--duration", "1s", "--output", "json"}), kExitDone);
  EXPECT_EQ(err_, "");
}

// A variable of a script that is not set would record, or end, what belongs to everybody.
TEST_F(CaptureCommandTest, AnOptionWithNothingInItIsWrongUsage) {
  for (const char* const option :
       {"--job", "--namespace", "--pod", "--label", "--worker-gid", "--instance", "--core",
        "--event-type", "--duration", "--executions", "--at-execution", "--max-size", "--last",
        "--require", "--budget-core", "-o"}) {
    for (const char* const value : {"", " ", ","}) {
      service_.spec.set_name("nobody asked");
      EXPECT_EQ(RunCli({"capture", option, value}), kExitUsage) << option;
      EXPECT_EQ(service_.spec.name(), "nobody asked") << option;
    }
  }
  EXPECT_EQ(RunCli({"capture", "--job", ""}), kExitUsage);
  EXPECT_THAT(
      err_, HasSubstr("--job: it is empty (an unset variable?): omit it for workers of every job"));
  service_.stored = {Standing(kCaptureId, v1::CAPTURE_MODE_FLIGHT_RECORDER, "llama", 1)};
  EXPECT_EQ(RunCli({"flight-recorder", "off", "--job", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"flight-recorder", "off", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"flight-recorder", "on", "--job", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "stop", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "delete", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "list", "--job", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"export", kCaptureId, "--core", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"export", "--continuous", "--job", ""}), kExitUsage);
  EXPECT_EQ(RunCli({"workers", "--job", ""}), kExitUsage);
  EXPECT_EQ(service_.stopped, "");
}

// What is in a file of options and is empty is named by its line.
TEST_F(CaptureCommandTest, AnEmptyLineOfAFileIsWrongUsage) {
  const std::string path = testing::TempDir() + "/cli_empty_option.conf";
  std::ofstream(path) << "[capture]\njob = \"\"\n";
  config_places_ = {{path, "user file", true}};
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr(path + ":2:1: job has no value; remove the line"));
}

// What `json.load(sys.stdin)` reads has to be one object.
TEST_F(CaptureCommandTest, JsonOfACaptureThatIsExportedIsOneObject) {
  const std::string path = testing::TempDir() + "/cli_json_and_file.json";
  for (const auto& line : {std::vector<const char*>{"capture", "--duration", "1s"},
                           std::vector<const char*>{"capture", "stop", kCaptureId}}) {
    std::vector<const char*> arguments = line;
    arguments.insert(arguments.end(), {"-o", path.c_str(), "--output", "json"});
    EXPECT_EQ(RunCli(arguments), kExitDone);
    v1::Capture capture;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(out_, &capture).ok()) << out_;
    EXPECT_EQ(capture.capture_id(), kCaptureId);
    v1::ExportDone done;
    EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(err_, &done).ok()) << err_;
    EXPECT_EQ(done.total().spans(), 2u);
  }
}

TEST_F(CaptureCommandTest, ContradictionsAreWrongUsage) {
  EXPECT_EQ(RunCli({"capture", "--last", "20s", "--duration", "5s"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("use two captures"));
  EXPECT_EQ(RunCli({"capture", "--continuous"}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--dry-run", "-o", "x.json"}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--continuous", "--keep", "1m", "-o", "x.json"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("neurontrace export --continuous"));
}

TEST_F(CaptureCommandTest, InvalidArgumentFromAggregatorIsUsageError) {
  service_.start_status = {grpc::StatusCode::INVALID_ARGUMENT,
                           "unknown event type 'nc_exec' (did you mean 'nc_exec_running'?)"};
  EXPECT_EQ(RunCli({"capture", "--event-type", "nc_exec"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("did you mean 'nc_exec_running'?"));
  service_.start_status = {grpc::StatusCode::FAILED_PRECONDITION,
                           "no flight recorder runs: neurontrace flight-recorder on begins one"};
  EXPECT_EQ(RunCli({"capture", "--last", "20s"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("neurontrace flight-recorder on"));
  service_.start_status = {grpc::StatusCode::RESOURCE_EXHAUSTED, "16 captures are running"};
  EXPECT_EQ(RunCli({"capture"}), kExitFailed);
}

TEST_F(CaptureCommandTest, EndsWithTheOutcomeOfEachWorkerInTableAndJson) {
  auto& first = *service_.capture.mutable_workers(0);
  first.set_begun_as_planned(true);
  first.set_begin_offset_ns(410'000);
  AddRefused(service_.capture, v1::CAPTURE_OBSTACLE_NO_TAP);
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("refused"));
  EXPECT_THAT(out_, HasSubstr("1 of 2 workers recorded (no tap: 1)\n"
                              "began +410.0 us from the planned moment; not all their clocks were "
                              "known when it was planned\n"));
  EXPECT_EQ(RunCli({"capture", "--duration", "1s", "--output", "json"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\"obstacle\": \"CAPTURE_OBSTACLE_NO_TAP\""));
  EXPECT_THAT(out_, HasSubstr("\"begin_offset_ns\": \"410000\""));
  EXPECT_THAT(out_, Not(HasSubstr("\"flight_recorder\": \"A")));
}

TEST_F(CaptureCommandTest, UnstartedCaptureExitsWithOneAndNamesWorkers) {
  service_.capture.set_state(v1::CAPTURE_STATE_NOT_BEGUN);
  service_.capture.clear_workers();
  AddRefused(service_.capture, v1::CAPTURE_OBSTACLE_NOT_INITIALISED);
  service_.capture.add_warnings("1 of 2 workers armed; --require all asks for 2");
  EXPECT_EQ(RunCli({"capture", "--require", "all", "-o", "never.json"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("state       not begun"));
  EXPECT_THAT(out_, HasSubstr("warning: 1 of 2 workers armed"));
  EXPECT_THAT(out_, HasSubstr("0 of 1 worker recorded (not initialised: 1)"));
  EXPECT_EQ(service_.export_request.capture_id(), "");
  EXPECT_EQ(RunCli({"captures", "show", kCaptureId}), kExitFailed);
}

TEST_F(CaptureCommandTest, StartExplainsWhyNothingBegins) {
  service_.capture.set_state(v1::CAPTURE_STATE_NOT_BEGUN);
  service_.capture.set_events(0);
  service_.capture.clear_workers();
  AddRefused(service_.capture, v1::CAPTURE_OBSTACLE_NOT_INITIALISED);
  service_.capture.add_warnings("1 of 2 workers armed; --require all asks for 2");
  EXPECT_EQ(RunCli({"capture", "start", "--require", "all"}), kExitIncomplete);
  EXPECT_EQ(out_, std::string(kCaptureId) + "\n");
  EXPECT_THAT(err_, HasSubstr("records nothing"));
  EXPECT_THAT(err_, HasSubstr("1 of 2 workers armed"));
  EXPECT_THAT(err_, HasSubstr("not initialised"));
  // One that is still running and has nobody yet.
  service_.capture.set_state(v1::CAPTURE_STATE_RECORDING);
  service_.capture.clear_workers();
  service_.capture.clear_warnings();
  service_.capture.mutable_spec()->set_include_neuron(true);
  EXPECT_EQ(RunCli({"capture", "start", "--continuous", "--keep", "10m"}), kExitIncomplete);
  EXPECT_THAT(err_, HasSubstr("no worker matches"));
  EXPECT_EQ(RunCli({"capture", "start", "--output", "json"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("CAPTURE_STATE_RECORDING"));
  // Where framework files may come is no worker without a reason.
  service_.capture.set_state(v1::CAPTURE_STATE_NOT_BEGUN);
  service_.capture.add_workers()->set_framework(true);
  EXPECT_EQ(RunCli({"capture", "start"}), kExitIncomplete);
  EXPECT_THAT(err_, HasSubstr("records nothing\n  no worker matches; "));
}

TEST_F(CaptureCommandTest, AFileThatCannotBeWrittenIsKnownBeforeAnythingIsAsked) {
  service_.spec.set_name("nobody asked");
  EXPECT_EQ(RunCli({"capture", "-d", "1s", "-o", "/no/such/directory/x.json"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot write to /no/such/directory/x.json"));
  EXPECT_EQ(service_.spec.name(), "nobody asked");
  EXPECT_EQ(RunCli({"capture", "stop", kCaptureId, "-o", "/no/such/directory/x.json"}),
            kExitFailed);
  EXPECT_EQ(service_.stopped, "");
}

TEST_F(CaptureCommandTest, PreviewReportsCost) {
  service_.capture.mutable_spec()->set_mode(v1::CAPTURE_MODE_PREVIEW);
  v1::CapturePreview& preview = *service_.capture.mutable_preview();
  preview.set_measured_ns(2'000'000'000);
  preview.set_events_per_second(124'000);
  preview.set_bytes_per_second(1 << 20);
  preview.set_duration_ns(30'000'000'000);
  preview.set_events(3'720'000);
  preview.set_bytes(30 << 20);
  preview.set_store_free_bytes(uint64_t{3} << 30);
  preview.set_quota_left_bytes(60 << 20);
  preview.set_most_instance_id("i-a");
  preview.set_most_bytes_per_second(500'000);
  EXPECT_EQ(RunCli({"capture", "--duration", "30s", "--dry-run"}), kExitDone);
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_PREVIEW);
  EXPECT_EQ(
      out_,
      "would record  1 worker on 1 instance\n"
      "rate          124,000 events/s, 1.0 MiB/s, measured over 2.0 s\n"
      "in 30.0 s     3,720,000 events, 30.0 MiB\n"
      "disk          1.0 % of 3.0 GiB free\n"
      "quota         50 % of 60.0 MiB left\n"
      "network       8.4 Mbit/s to the aggregator, at most 4.0 Mbit/s from one instance (i-a)\n"
      "Nothing was recorded.\n");
  preview.add_objections("it would take 30.0 MiB of 10.0 MiB");
  EXPECT_EQ(RunCli({"capture", "--duration", "30s", "--dry-run"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("would be refused: it would take 30.0 MiB of 10.0 MiB\n"));
  EXPECT_EQ(RunCli({"capture", "--dry-run", "--output", "json"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("\"objections\": ["));
}

TEST_F(CaptureCommandTest, AContinuousCaptureIsLeftToItselfOnceItRecords) {
  service_.steps.push_back(service_.capture);
  service_.steps.back().set_state(v1::CAPTURE_STATE_ARMING);
  service_.capture.set_state(v1::CAPTURE_STATE_RECORDING);
  service_.capture.mutable_workers(0)->set_state(v1::CAPTURE_WORKER_STATE_RECORDING);
  EXPECT_EQ(RunCli({"capture", "--continuous", "--keep", "10m"}), kExitDone);
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(service_.stopped, "");
  EXPECT_THAT(out_, HasSubstr("recording"));
}

TEST_F(CaptureCommandTest, InterruptedWatchExplainsHowToResume) {
  service_.capture.set_state(v1::CAPTURE_STATE_RECORDING);
  service_.watch_status = {grpc::StatusCode::INTERNAL, "the aggregator is at odds with itself"};
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("at odds with itself"));
  EXPECT_THAT(err_, HasSubstr(std::string("neurontrace captures watch ") + kCaptureId));
  EXPECT_EQ(service_.stopped, "") << "nobody asked for it";
}

// A command that waits for a store without room says so at once, again each minute, and at its end.
TEST_F(CaptureCommandTest, AStoreThatTakesNoDataIsReportedWhileItLasts) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  v1::Capture stalled = service_.capture;
  stalled.set_state(v1::CAPTURE_STATE_STOPPING);
  stalled.mutable_workers(0)->set_state(v1::CAPTURE_WORKER_STATE_STOPPING);
  stalled.mutable_workers(0)->set_events_stored(234);
  v1::StoreProblem& problem = *stalled.mutable_store_problem();
  problem.set_text("writing chunks: the disk is full (df)");
  problem.set_free_bytes(0);
  problem.set_lacks_room(true);
  for (const uint64_t second : {1, 2, 59, 61, 62}) {
    stalled.set_server_realtime_ns(second * kSecondNs);
    service_.steps.push_back(stalled);
  }
  for (const bool is_quiet : {false, true}) {
    std::vector<const char*> arguments = {"capture", "--duration", "1s"};
    if (is_quiet) arguments.push_back("--quiet");
    EXPECT_EQ(RunCli(arguments), kExitDone);
    size_t reports = 0;
    for (size_t at = err_.find("the disk is full (df); 0 B free"); at != std::string::npos;
         at = err_.find("the disk is full (df); 0 B free", at + 1)) {
      ++reports;
    }
    EXPECT_EQ(reports, 2u) << err_;
    EXPECT_THAT(err_, HasSubstr("1,000 events wait at agents"));
    EXPECT_THAT(err_, HasSubstr("takes data again; everything that agents kept is stored"));
  }
  // It ends without the data: nobody knows that the store works again.
  service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitIncomplete);
  EXPECT_THAT(err_, Not(HasSubstr("takes data again")));
  // The state of the moment, in the capture and in the status.
  service_.capture = stalled;
  RunCli({"captures", "show", kCaptureId, "--output", "json"});
  EXPECT_THAT(out_, HasSubstr("\"store_problem\""));
  RunCli({"captures", "show", kCaptureId});
  EXPECT_THAT(out_, HasSubstr("warning: the aggregator's store has taken no data since"));
  service_.store_problem = problem;
  EXPECT_EQ(RunCli({"status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("store       the aggregator's store has taken no data since"));
}

// Without a terminal, a command that waits for agents says for whom, and how to leave.
TEST_F(CaptureCommandTest, AWaitForAgentsIsReportedOncePerChange) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  v1::Capture stopping = service_.capture;
  stopping.set_state(v1::CAPTURE_STATE_STOPPING);
  stopping.set_stopped_realtime_ns(100 * kSecondNs);
  stopping.mutable_workers(0)->set_state(v1::CAPTURE_WORKER_STATE_STOPPING);
  for (const uint64_t second : {101, 109, 110, 111, 121, 131}) {
    stopping.set_server_realtime_ns(second * kSecondNs);
    service_.steps.push_back(stopping);
  }
  service_.got = stopping;
  service_.got->set_server_realtime_ns(110 * kSecondNs);
  v1::AgentCertificate& agent = *service_.got->mutable_certificate()->add_agents();
  agent.set_instance_id("i-away");
  agent.set_part(v1::AGENT_PART_RECORDING);
  for (const bool is_quiet : {false, true}) {
    std::vector<const char*> arguments = {"capture", "--duration", "1s"};
    if (is_quiet) arguments.push_back("--quiet");
    EXPECT_EQ(RunCli(arguments), kExitDone);
    const size_t at = err_.find("waiting for the last data of 1 instance: i-away (disconnected");
    ASSERT_NE(at, std::string::npos) << err_;
    EXPECT_EQ(err_.find("waiting for the last data", at + 1), std::string::npos) << err_;
    EXPECT_THAT(err_, HasSubstr("disconnected for 10.0 s or silent for 60.0 s.\n  Ctrl-C twice"));
    EXPECT_THAT(err_, HasSubstr(std::string("neurontrace captures watch ") + kCaptureId));
  }
  RunCli({"captures", "watch", kCaptureId});
  EXPECT_THAT(err_, HasSubstr("Ctrl-C: stop watching; the capture finishes by itself"));
}

TEST_F(CaptureCommandTest, WatchPrintsEveryChangeAsJsonLines) {
  service_.steps.push_back(service_.capture);
  service_.steps.back().set_state(v1::CAPTURE_STATE_RECORDING);
  EXPECT_EQ(RunCli({"captures", "watch", kCaptureId}), kExitDone);
  EXPECT_THAT(out_, StartsWith("capture     "));
  service_.got = service_.steps.front();  // GetCapture says that it continues
  EXPECT_EQ(RunCli({"captures", "watch", kCaptureId, "--output", "json"}), kExitDone);
  EXPECT_GE(std::count(out_.begin(), out_.end(), '\n'), 2);
  EXPECT_THAT(out_, StartsWith("{\"capture_id\":\""));
}

TEST_F(CaptureCommandTest, FlightRecorderIsTurnedOnShownAndTurnedOff) {
  service_.capture = Standing(kCaptureId, v1::CAPTURE_MODE_FLIGHT_RECORDER, "llama", 17);
  service_.capture.add_workers()->set_state(v1::CAPTURE_WORKER_STATE_RECORDING);
  EXPECT_EQ(RunCli({"flight-recorder", "on", "--job", "llama", "--ring-events", "262144",
                    "--event-type", "hardware"}),
            kExitDone);
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_FLIGHT_RECORDER);
  EXPECT_EQ(service_.spec.ring_events_per_core(), 262'144u);
  EXPECT_THAT(out_, HasSubstr("1 of 1 worker keeps its rings"));
  EXPECT_THAT(out_, HasSubstr("neurontrace capture --last 20s"));
  auto& suspended = *service_.capture.add_workers();
  suspended.set_state(v1::CAPTURE_WORKER_STATE_SUSPENDED);
  suspended.set_detail("for capture 01JE");
  service_.stored = {service_.capture};
  EXPECT_EQ(RunCli({"flight-recorder", "status"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("suspended"));
  EXPECT_THAT(out_, HasSubstr("for capture 01JE"));
  EXPECT_EQ(RunCli({"flight-recorder", "status", "--job", "other"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("off for job other"));
  EXPECT_EQ(RunCli({"flight-recorder", "status", "--output", "json"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\"captures\": ["));
  EXPECT_EQ(RunCli({"flight-recorder", "off"}), kExitDone);
  EXPECT_EQ(service_.stopped, kCaptureId);
}

TEST_F(CaptureCommandTest, FlightRecorderOffRequiresChoiceIfSeveral) {
  EXPECT_EQ(RunCli({"flight-recorder", "off"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("no flight recorder is on"));
  service_.stored = {Standing("01JA", v1::CAPTURE_MODE_FLIGHT_RECORDER, "llama", 1),
                     Standing("01JB", v1::CAPTURE_MODE_FLIGHT_RECORDER, "bert", 2)};
  EXPECT_EQ(RunCli({"flight-recorder", "off"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("01JB  job bert"));
  EXPECT_EQ(service_.stopped, "");
  EXPECT_EQ(RunCli({"flight-recorder", "off", kCaptureId}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("is not a flight recorder"));
}

TEST_F(CaptureCommandTest, ExportTakesTheNewestContinuousCapture) {
  const std::string path = testing::TempDir() + "/cli_continuous.json";
  service_.stored = {Standing("01JA", v1::CAPTURE_MODE_CONTINUOUS, "llama", 1),
                     Standing("01JC", v1::CAPTURE_MODE_CONTINUOUS, "bert", 3),
                     Standing("01JB", v1::CAPTURE_MODE_CONTINUOUS, "llama", 2)};
  EXPECT_EQ(RunCli({"export", "--continuous", "--job", "llama", "--from", "-5m", "--to", "now",
                    "-o", path.c_str()}),
            kExitDone);
  EXPECT_EQ(service_.export_request.capture_id(), "01JB");
  EXPECT_TRUE(service_.export_request.window_is_before_now());
  EXPECT_EQ(service_.export_request.window_start_ns(), 300'000'000'000u);
  EXPECT_EQ(service_.export_request.window_end_ns(), 0u);
  EXPECT_EQ(RunCli({"export", "--continuous", "--from", "-5m", "--to", "-1m", "-o", path.c_str()}),
            kExitDone);
  EXPECT_EQ(service_.export_request.capture_id(), "01JC");
  EXPECT_EQ(service_.export_request.window_end_ns(), 60'000'000'000u);
  EXPECT_EQ(RunCli({"export", "--continuous", "--job", "gpt", "-o", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("there is one for job llama, job bert, job llama"));
}

TEST_F(CaptureCommandTest, ExportRejectsInvalidWindows) {
  for (const auto& [from, to] :
       {std::pair("now", ""), {"-1m", "-5m"}, {"1s", "-5m"}, {"-5m", "2s"}, {"2s", "1s"}}) {
    EXPECT_EQ(RunCli({"export", kCaptureId, "--from", from, "--to", to}), kExitUsage)
        << from << " " << to;
  }
  EXPECT_EQ(RunCli({"export"}), kExitUsage);
  EXPECT_EQ(RunCli({"export", kCaptureId, "--continuous"}), kExitUsage);
}

TEST_F(CaptureCommandTest, TriggersAreListedAndFired) {
  EXPECT_EQ(RunCli({"triggers"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("No triggers."));
  v1::Trigger& trigger = *service_.triggers.add_triggers();
  trigger.mutable_rule()->set_name("slow");
  trigger.mutable_rule()->set_kind(v1::TRIGGER_KIND_SLOW_EXECUTION);
  trigger.mutable_rule()->set_times_median(2.5);
  trigger.mutable_rule()->set_last_ns(20'000'000'000);
  trigger.set_fired(3);
  trigger.set_last_cause("execution 4711 of core 3 took 91 ms, 3.1 x its median");
  service_.triggers.set_file("/etc/neurontrace/triggers.yaml");
  service_.triggers.set_problem("line 3: no kind is called 'slw'");
  EXPECT_EQ(RunCli({"triggers", "list"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("an execution takes over 2.5 x the median"));
  EXPECT_THAT(out_, HasSubstr("last 20.0 s"));
  EXPECT_THAT(out_, HasSubstr("slow fired last: execution 4711"));
  EXPECT_THAT(out_, HasSubstr("warning: /etc/neurontrace/triggers.yaml: line 3"));
  service_.fire_reply.set_capture_id(kCaptureId);
  EXPECT_EQ(RunCli({"triggers", "fire", "by-hand", "--cause", "loss went up"}), kExitDone);
  EXPECT_EQ(service_.fired.name(), "by-hand");
  EXPECT_EQ(service_.fired.cause(), "loss went up");
  EXPECT_EQ(out_, std::string(kCaptureId) + "\n");
  service_.fire_reply.clear_capture_id();
  service_.fire_reply.set_problem("cooling down for another 50 s");
  EXPECT_EQ(RunCli({"triggers", "fire", "by-hand"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cooling down"));
}

TEST_F(CaptureCommandTest, AFileOfTriggersIsCheckedWithoutAnAggregator) {
  const std::string path = testing::TempDir() + "/cli_triggers.toml";
  std::ofstream(path) << "[by-hand]\nwhen = \"post\"\nrecord-for = \"5s\"\n";
  EXPECT_EQ(RunCli({"triggers", "check", path.c_str()}), kExitDone) << err_;
  EXPECT_THAT(out_, HasSubstr("by-hand"));
  EXPECT_THAT(out_, HasSubstr(path + ": 1 rule, no problems\n"));
  std::ofstream(path) << "[by-hand]\nkind = \"no-such-kind\"\n";
  EXPECT_EQ(RunCli({"triggers", "check", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(path + ":2"));
  std::ofstream(path) << "[by-hand]\nwhen = \"silent-core\"\nsilent-for = \"1x\"\nnonsense = 1\n";
  EXPECT_EQ(RunCli({"triggers", "check", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, StartsWith("neurontrace: " + path + ":3:1: "));
  EXPECT_THAT(err_, HasSubstr("\nneurontrace: " + path + ":4:1: "));
  EXPECT_EQ(RunCli({"triggers", "check", path.c_str(), "--output", "json"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("\"problem\": \""));
}

TEST_F(CaptureCommandTest, ListsModesTagsAndCauses) {
  v1::Capture snapshot = Standing("01JA", v1::CAPTURE_MODE_SNAPSHOT, "llama", 1);
  snapshot.set_state(v1::CAPTURE_STATE_COMPLETE);
  snapshot.mutable_spec()->set_cause("slow: execution 4711");
  v1::KeyValue& tag = *snapshot.mutable_spec()->add_labels();
  tag.set_key("ticket");
  tag.set_value("17");
  service_.stored = {snapshot, Standing("01JB", v1::CAPTURE_MODE_CONTINUOUS, "", 2)};
  EXPECT_EQ(RunCli({"captures"}), kExitDone);
  for (const char* word : {"snapshot", "continuous", "ticket=17", "slow: execution 4711"}) {
    EXPECT_THAT(out_, HasSubstr(word));
  }
  EXPECT_EQ(RunCli({"captures", "list", "--running"}), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr("01JA")));
  EXPECT_EQ(RunCli({"captures", "list", "--tag", "ticket=17"}), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr("01JB")));
  for (int i = 0; i < 60; ++i) service_.stored.push_back(snapshot);
  EXPECT_EQ(RunCli({"captures"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("(12 older: neurontrace captures list --all shows them)"));
  EXPECT_EQ(RunCli({"captures", "list", "--all"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("01JB"));
}

TEST_F(CaptureCommandTest, ListShowsAndFiltersStarsAndTags) {
  v1::Capture plain = Standing("01JA", v1::CAPTURE_MODE_CONTINUOUS, "", 1);
  service_.stored = {plain};
  EXPECT_EQ(RunCli({"captures"}), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr("STAR ")));
  EXPECT_THAT(out_, Not(HasSubstr("TAGS")));
  v1::Capture starred = Standing("01JB", v1::CAPTURE_MODE_CONTINUOUS, "", 2);
  starred.set_starred(true);
  starred.add_tags("baseline");
  starred.add_tags("needs review");
  v1::KeyValue& label = *starred.mutable_spec()->add_labels();
  label.set_key("ticket");
  label.set_value("17");
  service_.stored = {plain, starred};
  EXPECT_EQ(RunCli({"captures"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("STAR  TAGS"));
  EXPECT_THAT(out_, HasSubstr("ticket=17, baseline, needs review"));
  for (const std::vector<const char*>& filter :
       std::vector<std::vector<const char*>>{{"--starred"},
                                             {"--tag", "needs review"},
                                             {"--tag", "ticket=17", "--tag", "baseline"},
                                             {"--starred", "--tag", "baseline"}}) {
    std::vector<const char*> words = {"captures", "list"};
    words.insert(words.end(), filter.begin(), filter.end());
    EXPECT_EQ(RunCli(words), kExitDone);
    EXPECT_THAT(out_, HasSubstr("01JB")) << filter[0];
    EXPECT_THAT(out_, Not(HasSubstr("01JA"))) << filter[0];
  }
  EXPECT_EQ(RunCli({"captures", "list", "--tag", "base"}), kExitDone);
  EXPECT_EQ(out_, "None of the 2 captures match.\n");
  EXPECT_EQ(RunCli({"captures", "list", "--tag", ""}), kExitUsage);
}

TEST_F(CaptureCommandTest, RenamesCaptures) {
  EXPECT_EQ(RunCli({"captures", "rename", kCaptureId, "night run"}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + " is named night run\n");
  ASSERT_EQ(service_.updates.size(), 1u);
  EXPECT_FALSE(service_.updates[0].has_starred());
  EXPECT_EQ(RunCli({"captures", "rename", kCaptureId, "", "--output", "json"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"name\": \"\""));
  EXPECT_TRUE(service_.updates[1].has_name());
  EXPECT_EQ(RunCli({"captures", "rename", kCaptureId, ""}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + " has no name\n");
  EXPECT_EQ(RunCli({"captures", "rename", kCaptureId}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "rename", "01XX", "n"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("begins with '01XX'"));
}

TEST_F(CaptureCommandTest, StarsEveryCaptureThatItCan) {
  EXPECT_EQ(RunCli({"captures", "star", "01XX", kCaptureId, "01YY"}), kExitFailed);
  EXPECT_EQ(out_, std::string(kCaptureId) + " starred\n");
  EXPECT_THAT(err_, HasSubstr("'01XX'"));
  EXPECT_THAT(err_, HasSubstr("'01YY'"));
  EXPECT_TRUE(service_.capture.starred());
  EXPECT_EQ(RunCli({"captures", "unstar", kCaptureId, "--output", "json"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"starred\": false"));
  EXPECT_THAT(out_, HasSubstr("\"captures\": ["));
  EXPECT_FALSE(service_.capture.starred());
  EXPECT_EQ(RunCli({"captures", "star"}), kExitUsage);
}

TEST_F(CaptureCommandTest, AddsAndRemovesTags) {
  EXPECT_EQ(RunCli({"captures", "tag", kCaptureId, "baseline", "needs review"}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + " has the tags baseline, needs review\n");
  EXPECT_EQ(RunCli({"captures", "tag", kCaptureId, "baseline", "needs review", "--remove"}),
            kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + " has no tags\n");
  ASSERT_EQ(service_.updates.size(), 2u);
  EXPECT_EQ(service_.updates[1].add_tags_size(), 0);
  EXPECT_EQ(service_.updates[1].remove_tags_size(), 2);
  EXPECT_EQ(RunCli({"captures", "tag", kCaptureId}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "tag", kCaptureId, ""}), kExitUsage);
}

TEST_F(CaptureCommandTest, ChangesHowLongACaptureIsKept) {
  service_.capture.set_stopped_realtime_ns(1'700'000'000'000'000'000);
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--for", "30h"}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) +
                      " is kept for 30 h 0 min after its end, until about 2023-11-16 04:13:20Z\n");
  ASSERT_EQ(service_.updates.size(), 1u);
  EXPECT_EQ(service_.updates[0].retention_ns(), 108'000'000'000'000u);
  EXPECT_FALSE(service_.updates[0].has_starred());
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--forever"}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + " is kept until somebody deletes it\n");
  EXPECT_TRUE(service_.updates[1].has_retention_ns());
  service_.capture.mutable_spec()->set_mode(v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--for", "10m"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("keeps events of the last 10 min"));
}

TEST_F(CaptureCommandTest, KeepNeedsOneTime) {
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--for 30d or --forever"));
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--for", "1d", "--forever"}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--for", "0s"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("greater than 0"));
  EXPECT_EQ(RunCli({"captures", "keep", kCaptureId, "--for", "soon"}), kExitUsage);
  EXPECT_EQ(RunCli({"captures", "keep", "01XX", "--forever"}), kExitFailed);
  EXPECT_EQ(service_.updates.size(), 1u);
}

TEST_F(CaptureCommandTest, CompletionOffersTheChanges) {
  EXPECT_EQ(RunCli({"__complete", "captures", ""}), kExitDone);
  for (const char* const command : {"rename\t", "star\t", "unstar\t", "tag\t", "keep\t"}) {
    EXPECT_THAT(out_, HasSubstr(command));
  }
  EXPECT_EQ(RunCli({"__complete", "captures", "tag", "--rem"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("--remove\t"));
}

}  // namespace
}  // namespace neurontrace::cli
