// SPDX-License-Identifier: Apache-2.0
// Command lines in, configurations or exit codes out.
#include "agent/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

struct Parsed {
  std::optional<AgentConfig> config;
  int exit_code = -1;
  std::string out;
  std::string err;
};

Parsed Parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "neurontrace-agent");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  Parsed parsed;
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  parsed.config = ParseAgentConfig(static_cast<int>(argv.size()), argv.data(), parsed.exit_code);
  parsed.out = ::testing::internal::GetCapturedStdout();
  parsed.err = ::testing::internal::GetCapturedStderr();
  return parsed;
}

class AgentConfigTest : public ::testing::Test {
 protected:
  ~AgentConfigTest() override {
    for (const char* name :
         {"NEURONTRACE_AGGREGATOR", "NEURONTRACE_AGENT_SOCKET", "NEURONTRACE_INSTANCE_ID"}) {
      unsetenv(name);
    }
  }
};

TEST_F(AgentConfigTest, NeedsOnlyTheAggregator) {
  const Parsed parsed = Parse({"--aggregator", "10.0.0.5:9400"});
  ASSERT_TRUE(parsed.config.has_value()) << parsed.err;
  EXPECT_EQ(parsed.config->aggregator, "10.0.0.5:9400");
  EXPECT_EQ(parsed.config->socket, "/run/neurontrace/agent.sock");
  EXPECT_EQ(parsed.config->health_address, "127.0.0.1:9401");
  EXPECT_FALSE(parsed.config->ranks.any());
}

TEST_F(AgentConfigTest, CommandLineOverridesConfigFile) {
  const std::string path = ::testing::TempDir() + "/nt_agent_config_test.toml";
  std::ofstream(path) << "aggregator = \"10.0.0.5:9400\"\n"
                         "spool-bytes = \"2GiB\"\n"
                         "tls-ca = \"ca.pem\"\n"
                         "tls-server-name = \"aggregator\"\n";
  const Parsed parsed = Parse({"--config", path, "--tls-ca", "other.pem"});
  ASSERT_TRUE(parsed.config.has_value()) << parsed.err;
  EXPECT_EQ(parsed.config->aggregator, "10.0.0.5:9400");
  EXPECT_EQ(parsed.config->spool_bytes, uint64_t{2} << 30);
  EXPECT_EQ(parsed.config->security.ca, "other.pem");
  EXPECT_EQ(parsed.config->security.server_name, "aggregator");
  std::ofstream(path) << "agregator = \"10.0.0.5:9400\"\n";
  const Parsed wrong = Parse({"--config", path, "--aggregator", "a:1"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("agregator"));
  std::remove(path.c_str());
  EXPECT_EQ(Parse({"--config", path, "--aggregator", "a:1"}).exit_code, 2) << "the file is gone";
}

TEST_F(AgentConfigTest, ReportsConfigFileErrors) {
  const std::string path = ::testing::TempDir() + "/nt_agent_config_wrong.toml";
  const auto error = [&path](const std::string& text) {
    std::ofstream(path) << text;
    const Parsed parsed = Parse({"--config", path, "--aggregator", "a:1"});
    EXPECT_EQ(parsed.exit_code, 2);
    return parsed.err;
  };
  EXPECT_THAT(error("[agent]\nspool = \"none\"\n"),
              HasSubstr(path + ":1:2: unexpected section [agent]: options must be at top level"));
  EXPECT_THAT(error("spol = 3\n"), HasSubstr(path + ":1:1: spol is not an option"));
  EXPECT_THAT(error(std::string(1000, 's') + "\x1b = 3\n"), SizeIs(Lt(500u)));
  EXPECT_THAT(error("s\x1b[31m = 3\n"), HasSubstr(path + ":1:"));
  EXPECT_THAT(error("s\x1b[31m = 3\n"), Not(HasSubstr("\x1b")));
  EXPECT_THAT(error("# first\n\ndrain-seconds = -5\n"), HasSubstr(path + ":3:"));
  EXPECT_THAT(error("spool-bytes = \"5XB\"\n"), HasSubstr(path + ":1:"));
  EXPECT_THAT(error("log-level = info\n"), HasSubstr(path + ":1:")) << "not TOML";
  EXPECT_THAT(error("health-address = \"\\u001b" + std::string(3'000, 'v') + "\"\n"),
              AllOf(HasSubstr("?vvv"), SizeIs(Lt(1'500u))));
  EXPECT_THAT(error(std::string((1 << 20) + 1, '#')), HasSubstr("is larger than 1048576 bytes"));
  std::remove(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(Parse({"--config", path, "--aggregator", "a:1"}).err,
              HasSubstr("is not a regular file"));
  std::remove(path.c_str());
}

TEST_F(AgentConfigTest, SpoolIsSyncedByDefault) {
  EXPECT_TRUE(Parse({"--aggregator", "a:1"}).config->spool_syncs);
  EXPECT_TRUE(Parse({"--aggregator", "a:1", "--spool-durability", "synced"}).config->spool_syncs);
  EXPECT_FALSE(
      Parse({"--aggregator", "a:1", "--spool-durability", "page-cache"}).config->spool_syncs);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--spool-durability", "maybe"}).exit_code, 2);
}

TEST_F(AgentConfigTest, UsesConfiguredProbeMode) {
  EXPECT_EQ(Parse({"--aggregator", "a:1"}).config->clock_probes, ProbeMode::kAuto);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--clock-probes", "auto"}).config->clock_probes,
            ProbeMode::kAuto);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--clock-probes", "udp"}).config->clock_probes,
            ProbeMode::kUdp);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--clock-probes", "grpc"}).config->clock_probes,
            ProbeMode::kGrpc);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--clock-probes", "off"}).config->clock_probes,
            ProbeMode::kOff);
  EXPECT_EQ(Parse({"--aggregator", "a:1", "--clock-probes", "maybe"}).exit_code, 2);
}

TEST_F(AgentConfigTest, ScansProcessesByDefault) {
  EXPECT_TRUE(Parse({"--aggregator", "h:1"}).config->scans_processes);
  EXPECT_TRUE(Parse({"--aggregator", "h:1", "--process-scan"}).config->scans_processes);
  EXPECT_FALSE(Parse({"--aggregator", "h:1", "--no-process-scan"}).config->scans_processes);
}

TEST_F(AgentConfigTest, OmitsArgumentsByDefault) {
  EXPECT_FALSE(Parse({"--aggregator", "h:1"}).config->command_arguments);
  EXPECT_TRUE(Parse({"--aggregator", "h:1", "--command-arguments"}).config->command_arguments);
}

TEST_F(AgentConfigTest, SocketIsGroupAccessibleByDefault) {
  const auto mode = [](const std::string& text) {
    return Parse({"--aggregator", "h:1", "--socket-mode", text}).config->socket_mode;
  };
  EXPECT_EQ(Parse({"--aggregator", "h:1"}).config->socket_mode, 0660u);
  EXPECT_EQ(mode("0660"), 0660u);
  EXPECT_EQ(mode("666"), 0666u);
  EXPECT_EQ(mode("0777"), 0777u);
  // What is no mode, has bits that a socket has no use for, or would keep the agent out.
  for (const char* wrong : {"", "rw", "0680", "0x1b0", "0660 ", "-660", "01660", "4660", "0460",
                            "0260", "0060", "0", "66666666666666"}) {
    const Parsed parsed = Parse({"--aggregator", "h:1", std::string("--socket-mode=") + wrong});
    EXPECT_EQ(parsed.exit_code, 2) << wrong;
    EXPECT_THAT(parsed.err, HasSubstr("--socket-mode")) << wrong;
  }
}

TEST_F(AgentConfigTest, KinetoGroupIsANameOrANumber) {
  EXPECT_EQ(*FindKinetoGroup(""), -1);
  EXPECT_EQ(*FindKinetoGroup("9400"), 9400);
  EXPECT_EQ(*FindKinetoGroup("root"), 0);
  const auto none = FindKinetoGroup("no such group");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(none.status().message().find("--kineto-group"), std::string::npos);
}

TEST_F(AgentConfigTest, UsesKubeletWhenConfigured) {
  EXPECT_EQ(Parse({"--aggregator", "h:1"}).config->pod_resources, "");
  EXPECT_EQ(Parse({"--aggregator", "h:1", "--pod-resources", "/k.sock"}).config->pod_resources,
            "/k.sock");
  const Parsed wrong = Parse({"--aggregator", "h:1", "--pod-resources", std::string(200, 'x')});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--pod-resources"));
}

TEST_F(AgentConfigTest, ReadsEveryOption) {
  const Parsed parsed = Parse({"--aggregator",       "[::1]:1",
                               "--socket",           "/tmp/s",
                               "--instance-id",      "i-1",
                               "--agent-id",         "a-1",
                               "--framework-file",   "x.trace.json",
                               "--framework-file",   "y.trace.json",
                               "--framework-dir",    "/tmp",
                               "--worker-start-id",  "0",
                               "--workers-per-node", "4",
                               "--worker-count",     "8",
                               "--health-address",   "127.0.0.1:0",
                               "--log-level",        "debug",
                               "--drain-seconds",    "3"});
  ASSERT_TRUE(parsed.config.has_value()) << parsed.err;
  EXPECT_THAT(parsed.config->framework_files, ElementsAre("x.trace.json", "y.trace.json"));
  EXPECT_EQ(parsed.config->framework_directory, "/tmp");
  EXPECT_EQ(parsed.config->ranks.worker_start_id, 0);
  EXPECT_EQ(parsed.config->ranks.workers_per_node, 4);
  EXPECT_EQ(parsed.config->ranks.worker_count, 8);
  EXPECT_EQ(parsed.config->drain_seconds, 3u);
}

TEST_F(AgentConfigTest, FallsBackToEnvironmentVariables) {
  setenv("NEURONTRACE_AGGREGATOR", "env:1", 1);
  setenv("NEURONTRACE_INSTANCE_ID", "i-env", 1);
  Parsed parsed = Parse({});
  ASSERT_TRUE(parsed.config.has_value()) << parsed.err;
  EXPECT_EQ(parsed.config->aggregator, "env:1");
  EXPECT_EQ(parsed.config->instance_id, "i-env");
  parsed = Parse({"--aggregator", "flag:2"});
  EXPECT_EQ(parsed.config->aggregator, "flag:2");
}

TEST_F(AgentConfigTest, WrongUsageExitsWithCodeTwoAndReason) {
  const struct {
    std::vector<std::string> arguments;
    const char* error;
  } cases[] = {
      {{}, "--aggregator"},
      {{"--aggregator", "nowhere"}, "HOST:PORT"},
      {{"--aggregator", "h:99999"}, "port"},
      {{"--aggregator", "::1"}, "HOST:PORT"},
      {{"--aggregator", "h:1", "--socket", std::string(200, 'x')}, "Unix socket"},
      {{"--aggregator", "h:1", "--instance-id", "a b"}, "letters"},
      {{"--aggregator", "h:1", "--worker-start-id", "-1"}, "--worker-start-id"},
      {{"--aggregator", "h:1", "--worker-count", "0"}, "--worker-count"},
      {{"--aggregator", "h:1", "--framework-dir", "/no/such/place"}, "--framework-dir"},
      {{"--aggregator", "h:1", "--log-level", "loud"}, "--log-level"},
      {{"--aggregator", "h:1", "--unheard-of"}, "--unheard-of"},
  };
  for (const auto& c : cases) {
    const Parsed parsed = Parse(c.arguments);
    EXPECT_FALSE(parsed.config.has_value());
    EXPECT_EQ(parsed.exit_code, 2) << c.error;
    EXPECT_THAT(parsed.err, HasSubstr(c.error));
  }
}

TEST_F(AgentConfigTest, HelpAndVersionEndWithZero) {
  const Parsed help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Examples:"));
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, HasSubstr(NEURONTRACE_VERSION));
}

}  // namespace
}  // namespace neurontrace
