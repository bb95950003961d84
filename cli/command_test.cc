// SPDX-License-Identifier: Apache-2.0
// The whole command line against an operator service with state, over gRPC's in-process channel:
// what is asked of the service, what is printed, and the exit codes.
#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(CommandLineTest, ShowsStatusAsTableAndJson) {
  EXPECT_EQ(RunCli({"status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("agg-1"));
  EXPECT_THAT(out_, HasSubstr("connected"));
  EXPECT_EQ(RunCli({"status", "--output", "json"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"agents_connected\": 1"));
}

TEST_F(CommandLineTest, ShowsRanksAsRangesWithTheirEvidence) {
  EXPECT_EQ(RunCli({"workers", "--instance", "i-a,i-b"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("32-34,40"));
  EXPECT_THAT(out_, HasSubstr("RANK=32"));
  EXPECT_THAT(out_, HasSubstr("busy: other profiler"));
  EXPECT_EQ(service_.workers_request.instance_ids_size(), 2);
}

TEST_F(CommandLineTest, WorkersOfOneStateAreShownAndConflictsEndWithCodeThree) {
  EXPECT_EQ(RunCli({"workers", "--state", "busy"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("i-a"));
  EXPECT_EQ(RunCli({"workers", "--state", "ready"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("No worker in state ready"));
  EXPECT_EQ(RunCli({"workers", "--state", "asleep"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("the states are not initialised, ready"));
  EXPECT_EQ(RunCli({"workers", "--brief"}), kExitDone);
  EXPECT_EQ(out_, "1 worker: 1 busy: other profiler\n");
  service_.jobs_conflict = true;
  EXPECT_EQ(RunCli({"workers"}), kExitIncomplete);
  EXPECT_EQ(RunCli({"workers", "--output", "json"}), kExitIncomplete);
}

TEST_F(CommandLineTest, SendsTheWholeSelectionOfACapture) {
  EXPECT_EQ(RunCli({"capture", "--duration", "500ms", "--core", "0,2-3", "--event-type",
                    "hardware,^cc_running", "--job", "llama", "--no-framework"}),
            kExitDone);
  EXPECT_EQ(service_.spec.duration_ns(), 500'000'000u);
  EXPECT_EQ(service_.spec.neuron_cores_size(), 3);
  EXPECT_EQ(service_.spec.event_types_size(), 2);
  EXPECT_EQ(service_.spec.job(), "llama");
  EXPECT_TRUE(service_.spec.include_neuron());
  EXPECT_FALSE(service_.spec.include_framework());
  EXPECT_THAT(out_, HasSubstr("1,234 stored"));
}

TEST_F(CommandLineTest, TakesAllocationNoiseOnlyWhereItIsAskedFor) {
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitDone);
  EXPECT_FALSE(service_.spec.all_events());
  EXPECT_EQ(RunCli({"capture", "--duration", "1s", "--all-events"}), kExitDone);
  EXPECT_TRUE(service_.spec.all_events());
}

TEST_F(CommandLineTest, ReportsInvalidUtf8) {
  EXPECT_EQ(RunCli({"capture", "-d", "1s", "--name", "caf\xe9"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--name 'caf?' is not UTF-8"));
  EXPECT_EQ(RunCli({"captures", "show", "\xff"}), kExitUsage);
  EXPECT_EQ(RunCli({"workers", "--instance", "\xff"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--instance '?' is not UTF-8"));
}

TEST_F(CommandLineTest, ControlCharactersAreRefusedAndNotRepeated) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"captures", "show", "nl\nx"},
        {"triggers", "fire", "a\x1b[31mb"},
        {"workers", "--state", "\x1b[31m"}}) {
    EXPECT_EQ(RunCli(words), kExitUsage) << words[1];
    EXPECT_EQ(err_.find('\x1b'), std::string::npos);
    EXPECT_EQ(err_.find("nl\n"), std::string::npos);
  }
}

TEST_F(CommandLineTest, AnAggregatorIsNamedByHostAndPort) {
  for (const char* const wrong : {":99999", "host:99999", "host:27400x", "host", "host:0"}) {
    EXPECT_EQ(RunCli({"--aggregator", wrong, "status"}), kExitUsage) << wrong;
    EXPECT_THAT(err_, HasSubstr(wrong));
  }
}

TEST_F(CommandLineTest, StartPrintsNothingButTheId) {
  EXPECT_EQ(RunCli({"capture", "start"}), kExitDone);
  EXPECT_EQ(out_, "01JD8Z2M6WQJ4V1T0S3R5XK7PA\n");
  EXPECT_EQ(RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitDone);
  EXPECT_EQ(service_.stopped, "01JD8Z2M6WQJ4V1T0S3R5XK7PA");
}

TEST_F(CommandLineTest, ExitCodeReflectsOutcome) {
  service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitIncomplete);
  service_.capture.clear_workers();
  service_.capture.set_events(0);
  service_.capture.add_warnings("no worker matched");
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("warning: no worker matched"));
}

TEST_F(CommandLineTest, ShowAndExportOfIncompleteCaptureExitWithThreeAndReason) {
  const std::string path = testing::TempDir() + "/cli_summary.json";
  service_.capture.mutable_certificate()->set_verdict("complete: every event is stored");
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\ncomplete: every event is stored\n"));
  EXPECT_THAT(out_, HasSubstr("complete, duration unknown\n")) << "its stamps are 0";
  service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
  service_.capture.mutable_certificate()->set_verdict("incomplete: 3 of 9 events lost");
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\nincomplete: 3 of 9 events lost\n"));
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", "json"}),
            kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("\"verdict\": \"incomplete: 3 of 9 events lost\""));
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", "summary-json", "-o",
                    path.c_str()}),
            kExitIncomplete);
  EXPECT_EQ(service_.export_request.format(), v1::EXPORT_FORMAT_SUMMARY_JSON);
  EXPECT_THAT(out_, HasSubstr("\ncapture: incomplete: 3 of 9 events lost"));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(CommandLineTest, StopOfACaptureThatLostSomethingHasCodeThree) {
  for (const char* output : {"table", "json"}) {
    service_.capture.set_state(v1::CAPTURE_STATE_COMPLETE);
    const auto stop = [&] {
      return RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", output});
    };
    EXPECT_EQ(stop(), kExitDone);
    service_.capture.set_state(v1::CAPTURE_STATE_INCOMPLETE);
    service_.capture.mutable_certificate()->set_verdict("incomplete: 3 of 9 events lost");
    EXPECT_EQ(stop(), kExitIncomplete);
    EXPECT_THAT(out_, HasSubstr("incomplete: 3 of 9 events lost"));
  }
}

TEST_F(CommandLineTest, AnExportThatLeavesStoredChunksOutHasCodeThreeInEveryFormat) {
  service_.export_leaves_out = "incomplete: 1 stored chunk cannot be read";
  for (const char* format :
       {"perfetto", "json", "events", "summary-json", "summary-text", "chrome-json"}) {
    for (const char* output : {"table", "json"}) {
      EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "--output",
                        output, "-o", (testing::TempDir() + "/cli_left_out").c_str()}),
                kExitIncomplete);
      EXPECT_THAT(out_, HasSubstr("incomplete: 1 stored chunk cannot be read")) << format;
    }
    // The file goes to standard output, what is said of it does not.
    EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "-o", "-"}),
              kExitIncomplete);
    EXPECT_EQ(out_, "first second");
    EXPECT_THAT(err_, HasSubstr("incomplete: 1 stored chunk cannot be read"));
    // At a capture's end, too: of the capture itself nothing is missing.
    EXPECT_EQ(RunCli({"capture", "stop", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", format, "-o",
                      (testing::TempDir() + "/cli_left_out").c_str()}),
              kExitIncomplete);
  }
}

TEST_F(CommandLineTest, WorkerStreamNamesItsCore) {
  v1::StreamIdentity& identity = *service_.capture.mutable_streams(0)->mutable_identity();
  identity.mutable_worker()->set_instance_id("i-a");
  identity.set_kind(v1::STREAM_KIND_NEURON_CORE);
  identity.set_nc_idx(-1);
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--wide"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("  worker  "));
  EXPECT_THAT(out_, Not(HasSubstr("429496")));
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--output", "json"}),
            kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"nc_idx\": -1"));
}

TEST_F(CommandLineTest, ACommandWithoutItsSubcommandNamesThemWithAnExample) {
  ASSERT_EQ(RunCli({"__complete", ""}), kExitDone);
  std::istringstream names(out_);
  std::vector<std::string> groups = {""};
  for (std::string line; std::getline(names, line) && !line.starts_with(':');) {
    const std::string name = line.substr(0, line.find('\t'));
    ASSERT_EQ(RunCli({name.c_str(), "--help"}), kExitDone) << name;
    if (out_.find(" [OPTIONS] SUBCOMMAND") != std::string::npos) groups.push_back(name);
  }
  EXPECT_GE(groups.size(), 4u);
  for (const std::string& group : groups) {
    const std::vector<const char*> arguments =
        group.empty() ? std::vector<const char*>() : std::vector<const char*>{group.c_str()};
    EXPECT_EQ(RunCli(arguments), kExitUsage) << group;
    EXPECT_THAT(err_, HasSubstr(" needs a subcommand: ")) << group;
    EXPECT_THAT(err_, HasSubstr("; for example neurontrace " + group)) << group;
  }
  EXPECT_EQ(RunCli({"watch"}), kExitUsage);
  EXPECT_EQ(err_,
            "neurontrace: neurontrace watch needs a subcommand: on, off, status; for example "
            "neurontrace watch on --job llama-pretrain\n");
  EXPECT_EQ(RunCli({"artifacts"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("neurontrace artifacts: ID is required; for example"));
}

TEST_F(CommandLineTest, AFileThatIsMissingIsReportedWithItsOption) {
  for (const auto& [option, arguments] :
       std::vector<std::pair<std::string, std::vector<const char*>>>{
           {"--store", {"view", "01", "--store", "/none"}},
           {"--store", {"why", "01", "--store", "/none"}},
           {"--web-assets", {"view", "--web-assets", "/none"}},
           {"--tap", {"run", "--tap", "/none", "--", "true"}},
           {"--programs", {"record", "--programs", "/none", "--", "true"}},
           {"--framework-dir", {"record", "--framework-dir", "/none", "--", "true"}},
           {"--program", {"doctor", "--program", "/none"}}}) {
    EXPECT_NE(RunCli(arguments), kExitDone) << option;
    EXPECT_THAT(err_, HasSubstr(option)) << option;
    EXPECT_THAT(err_, HasSubstr("/none")) << option;
  }
}

// A connection that is there, and an answer that is not.
TEST_F(CommandLineTest, ABusyAggregatorIsNotReportedAsOneThatDoesNotRun) {
  service_.explain_status = {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"};
  EXPECT_EQ(RunCli({"why", "--live"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("in-process:1 runs and is too busy for this call"));
  EXPECT_THAT(err_, HasSubstr("--connect-timeout-ms"));
  EXPECT_THAT(err_, Not(HasSubstr("Check that neurontrace-aggregator runs")));
  service_.explain_status = {grpc::StatusCode::UNAVAILABLE, "connection refused"};
  EXPECT_EQ(RunCli({"why", "--live"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("Check that neurontrace-aggregator runs there"));
}

TEST_F(CommandLineTest, ReportsUnknownArgumentsInOrder) {
  EXPECT_EQ(RunCli({"capures"}), kExitUsage);
  EXPECT_EQ(err_,
            "neurontrace: unknown command 'capures'; neurontrace --help lists the commands\n");
  EXPECT_EQ(RunCli({"config", "shw"}), kExitUsage);
  EXPECT_EQ(
      err_,
      "neurontrace: unknown command 'config shw'; neurontrace config --help lists the commands\n");
  EXPECT_EQ(RunCli({"--job", "x", "status"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("unexpected argument: --job x\n"));
  EXPECT_EQ(RunCli({"capture", "--name", std::string(600, 'x').c_str()}), kExitUsage);
  EXPECT_EQ(err_, "neurontrace: --name has 600 bytes; the limit is 512\n");
  EXPECT_EQ(RunCli({"--aggregator", "host:99999", "status"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("the port must be a number from 1 to 65535"));
  for (const char* const option : {"-d", "--last", "--keep-for", "--max-size"}) {
    EXPECT_EQ(RunCli({"capture", option, "5"}), kExitUsage) << option;
    EXPECT_THAT(err_, HasSubstr("unit")) << option;
  }
}

TEST_F(CommandLineTest, AnExportThatSelectsNothingHasCodeThreeAndIsWritten) {
  const std::string path = testing::TempDir() + "/cli_nothing.pftrace";
  service_.export_warning = "nothing is selected: the capture has no core 77 (it has 0-1)";
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str()}), kExitIncomplete);
  EXPECT_THAT(out_, HasSubstr("warning: nothing is selected: the capture has no core 77"));
  EXPECT_TRUE(std::filesystem::exists(path));
  service_.export_warning = "good to know";
  EXPECT_EQ(
      RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str(), "--output", "json"}),
      kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"written_to\": \"" + path + "\""));
}

TEST_F(CommandLineTest, WorkersListsDisconnectedAgents) {
  EXPECT_EQ(RunCli({"workers"}), kExitDone);
  EXPECT_THAT(out_, Not(HasSubstr("away")));
  service_.agent_is_away = true;
  service_.has_workers = false;
  EXPECT_EQ(RunCli({"workers"}), kExitDone);
  EXPECT_EQ(
      out_,
      "No worker.\n1 agent is disconnected, so its workers are not listed: i-a (last seen -)\n");
}

TEST_F(CommandLineTest, ShowReportsUnmatchedFilter) {
  service_.capture.mutable_certificate()->add_workers()->set_job("llama");
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--state", "bogus"}),
            kExitUsage);
  EXPECT_THAT(err_, HasSubstr("no state starts with 'bogus'; the states are data lost, idle"));
  EXPECT_EQ(RunCli({"captures", "show", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--job", "xx"}), kExitDone);
  EXPECT_EQ(out_, "No worker of job xx is in this capture; its jobs are llama.\n");
}

TEST_F(CommandLineTest, RefusesWrongUsageWithCodeTwo) {
  EXPECT_EQ(RunCli({}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--duration", "soon"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("'soon' is not a duration"));
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "--format", "csv"}), kExitUsage);
  EXPECT_EQ(RunCli({"capture", "--core", "3-1"}), kExitUsage);
}

// Every command that the parser knows, by what completion offers.
void CollectCommands(const std::function<std::string(std::vector<const char*>)>& complete,
                     std::vector<std::string> path, std::vector<std::vector<std::string>>& all) {
  std::vector<const char*> words = {"__complete"};
  for (const std::string& word : path) words.push_back(word.c_str());
  words.push_back("");
  std::istringstream lines(complete(words));
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find('\t'));
    if (line[0] == ':' || name.starts_with("01JD")) continue;
    std::vector<std::string> child = path;
    child.push_back(name);
    all.push_back(child);
    CollectCommands(complete, child, all);
  }
}

TEST_F(CommandLineTest, AnEmptySelectionIsWrongUsageInEveryCommandThatHasIt) {
  for (const std::vector<const char*>& command :
       std::vector<std::vector<const char*>>{{"clocks", "--instance", ""},
                                             {"clocks", "--capture", ""},
                                             {"export", "--instance", "", kCaptureId},
                                             {"record", "--core", "", "--", "true"},
                                             {"record", "--event-type", "", "--", "true"}}) {
    EXPECT_EQ(RunCli(command), kExitUsage) << command[0] << command[1];
    EXPECT_THAT(err_, HasSubstr("it is empty (an unset variable?)"));
  }
}

TEST_F(CommandLineTest, HelpOfEveryCommandHasAnExampleAndFitsATerminal) {
  std::vector<std::vector<std::string>> commands = {{}};
  CollectCommands(
      [this](const std::vector<const char*>& words) {
        EXPECT_EQ(RunCli(words), kExitDone);
        return out_;
      },
      {}, commands);
  EXPECT_GT(commands.size(), 15u);
  for (const std::vector<std::string>& path : commands) {
    std::vector<const char*> words;
    for (const std::string& word : path) words.push_back(word.c_str());
    words.push_back("--help");
    const std::string name = ::testing::PrintToString(path);
    EXPECT_EQ(RunCli(words), kExitDone) << name;
    EXPECT_THAT(out_, HasSubstr("Example")) << name;
    std::istringstream lines(out_);
    for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 100u) << name << line;
  }
}

TEST_F(CommandLineTest, ExportWritesTheWholeFileUnderItsName) {
  const std::string path = testing::TempDir() + "/cli_export.json";
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str(), "--from", "1s",
                    "--to", "1755115509000000000"}),
            kExitDone);
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  EXPECT_EQ(content.str(), "first second");
  EXPECT_EQ(service_.export_request.format(), v1::EXPORT_FORMAT_JSON);  // by the file's ending
  EXPECT_EQ(service_.export_request.window_start_ns(), 1'000'000'000u);
  EXPECT_TRUE(service_.export_request.window_start_is_relative());
  EXPECT_EQ(service_.export_request.window_end_ns(), 1'755'115'509'000'000'000u);
  EXPECT_FALSE(service_.export_request.window_end_is_relative());
}

TEST_F(CommandLineTest, AFileNamedGzipIsOne) {
  const std::string path = testing::TempDir() + "/cli_export.json.gz";
  const auto run = [&](std::vector<const char*> more) {
    std::vector<const char*> words = {"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str()};
    words.insert(words.end(), more.begin(), more.end());
    return RunCli(words);
  };
  EXPECT_EQ(run({}), kExitDone);
  EXPECT_EQ(service_.export_request.format(), v1::EXPORT_FORMAT_JSON);
  EXPECT_EQ(service_.export_request.compression(), v1::EXPORT_COMPRESSION_GZIP);
  EXPECT_EQ(run({"--compress", "none"}), kExitDone);
  EXPECT_EQ(service_.export_request.compression(), v1::EXPORT_COMPRESSION_NONE);
}

TEST_F(CommandLineTest, ExportThatBreaksOffLeavesNoFile) {
  service_.export_breaks = true;
  const std::string directory = testing::TempDir() + "/cli_broken_export";
  std::filesystem::create_directories(directory);
  const std::string path = directory + "/trace.pftrace";
  EXPECT_EQ(RunCli({"export", "01JD8Z2M6WQJ4V1T0S3R5XK7PA", "-o", path.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("ended the export"));
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(CommandLineTest, AListOptionLeavesTheNextWordAlone) {
  const std::string path = testing::TempDir() + "/cli_list_option.pftrace";
  EXPECT_EQ(RunCli({"export", "-o", path.c_str(), "--core", "0,1", "--instance", "i-a", "--job",
                    "llama", "01JD8Z2M6WQJ4V1T0S3R5XK7PA"}),
            kExitDone);
  EXPECT_EQ(service_.export_request.job(), "llama");
  EXPECT_EQ(service_.export_request.neuron_cores_size(), 2);
  EXPECT_EQ(service_.export_request.instance_ids_size(), 1);
}

TEST_F(CommandLineTest, ReportsMissingFiles) {
  EXPECT_EQ(RunCli({"captures", "show", "01XX"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("no capture begins with '01XX'"));
}

TEST_F(CommandLineTest, CompletionKnowsEveryCommandAndOption) {
  EXPECT_EQ(RunCli({"completion", "bash"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("complete -F _neurontrace neurontrace"));
  EXPECT_EQ(RunCli({"__complete", "export", "--system-trace-p"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("--system-trace-primary-group\t"));
  EXPECT_EQ(RunCli({"__complete", "captures", "show", "01"}), kExitDone);
  EXPECT_EQ(out_, ":nothing\n");
}

TEST_F(CommandLineTest, ValidateReportsTraceErrors) {
  const std::string path = testing::TempDir() + "/cli_trace";
  // A packet of sequence 1 whose state is cleared, then one that reports a loss.
  std::ofstream(path, std::ios::binary) << "\x0a\x04\x50\x01\x68\x01";
  EXPECT_EQ(RunCli({"validate", path.c_str(), "--strict"}), kExitDone) << err_;
  EXPECT_THAT(out_, HasSubstr("no problems"));
  std::ofstream(path, std::ios::binary) << "\x0a\x04\x50\x01\x68\x01\x0a\x05\x50\x01\xd0\x02\x01";
  EXPECT_EQ(RunCli({"validate", path.c_str()}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("warning packet_loss"));
  EXPECT_EQ(RunCli({"validate", path.c_str(), "--strict", "--json"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("\"counts\": {\"packet_loss\": \"1\"}"));
  std::ofstream(path, std::ios::binary) << "\x0a\x7f";
  EXPECT_EQ(RunCli({"validate", path.c_str(), "--tree"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("packet 1 at byte 0: The file ends inside a packet of 127 bytes"));
  EXPECT_EQ(RunCli({"validate", (path + "_absent").c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("No such file"));
}

TEST_F(CommandLineTest, AFileOfOptionsCountsBelowTheCommandLine) {
  const std::string path = testing::TempDir() + "/cli_config";
  std::ofstream(path) << "output = \"json\"\n[export]\nformat = \"events\"\n";
  config_places_ = {{path, "user file"}};
  EXPECT_EQ(RunCli({"status"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"agents_connected\": 1"));
  EXPECT_EQ(RunCli({"status", "--output", "table"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("connected"));
  EXPECT_THAT(out_, Not(HasSubstr("\"agents_connected\"")));
  EXPECT_EQ(RunCli({"config", "show"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\"option\": \"format\", \"value\": \"events\", \"from\": "
                              "\"user file " +
                              path + ":3\""));
  EXPECT_EQ(RunCli({"config", "show", "--output", "table"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("command line"));
  std::ofstream(path) << "outptu = \"json\"\n";
  EXPECT_EQ(RunCli({"status"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr(path + ":1:1: there is no option 'outptu'"));
}

}  // namespace
}  // namespace neurontrace::cli
