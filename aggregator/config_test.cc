// SPDX-License-Identifier: Apache-2.0
// The command line of the aggregator, as far as it decides what is lost and when.
#include "aggregator/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

std::optional<AggregatorConfig> Parse(std::vector<std::string> arguments, int& exit_code) {
  arguments.insert(arguments.begin(), "neurontrace-aggregator");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return ParseAggregatorConfig(static_cast<int>(argv.size()), argv.data(), exit_code);
}

TEST(AggregatorConfig, AcknowledgesDurableChunksByDefault) {
  int exit_code = -1;
  EXPECT_EQ(Parse({}, exit_code)->durability, Durability::kSynced);
  EXPECT_EQ(Parse({"--durability", "synced"}, exit_code)->durability, Durability::kSynced);
  EXPECT_EQ(Parse({"--durability", "page-cache"}, exit_code)->durability, Durability::kPageCache);
}

TEST(AggregatorConfig, UnknownKeyInFileIsError) {
  const std::string path = ::testing::TempDir() + "/nt_aggregator_config_test.toml";
  std::ofstream(path) << "store = \"/data\"\naccess = \"/etc/access\"\n";
  int exit_code = -1;
  const auto config = Parse({"--config", path}, exit_code);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->access, "/etc/access");
  EXPECT_EQ(config->audit_log, "");
  std::ofstream(path) << "acces = \"/etc/access\"\n";
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(Parse({"--config", path}, exit_code).has_value());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("acces"));
  EXPECT_EQ(exit_code, 2);
  std::remove(path.c_str());
}

TEST(AggregatorConfig, AnAudienceIsForTokensOfKubernetes) {
  int exit_code = -1;
  EXPECT_FALSE(Parse({}, exit_code)->kubernetes_tokens);
  EXPECT_EQ(Parse({"--kubernetes-tokens"}, exit_code)->kubernetes_token_audience, "neurontrace");
  EXPECT_EQ(Parse({"--kubernetes-tokens", "--kubernetes-token-audience", "a"}, exit_code)
                ->kubernetes_token_audience,
            "a");
  EXPECT_FALSE(Parse({"--kubernetes-token-audience", "a"}, exit_code));
  EXPECT_FALSE(Parse({"--kubernetes-tokens", "--kubernetes-token-audience", ""}, exit_code));
}

TEST(AggregatorConfig, CallersHaveARate) {
  int exit_code = -1;
  EXPECT_EQ(Parse({}, exit_code)->calls_per_second, 100u);
  EXPECT_EQ(Parse({"--calls-per-second", "7"}, exit_code)->calls_per_second, 7u);
  EXPECT_FALSE(Parse({"--calls-per-second", "0"}, exit_code));
}

TEST(AggregatorConfig, ServesThePageOnlyWhereAskedAndSafe) {
  int exit_code = 0;
  EXPECT_EQ(Parse({}, exit_code)->view_address, "");
  const auto config = Parse(
      {"--view-address", "127.0.0.1:9403", "--view-host", "traces.example,traces"}, exit_code);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->view_hosts, (std::vector<std::string>{"traces.example", "traces"}));
  EXPECT_TRUE(CheckAggregatorConfig(*config).ok()) << CheckAggregatorConfig(*config);
  const absl::Status open =
      CheckAggregatorConfig(*Parse({"--view-address", "0.0.0.0:9403"}, exit_code));
  EXPECT_THAT(std::string(open.message()), testing::HasSubstr("--view-address: 0.0.0.0:9403"));
  EXPECT_FALSE(CheckAggregatorConfig(*Parse({"--view-host", "traces"}, exit_code)).ok());
  for (const char* const wrong : {"https://traces.example", "Traces", ""}) {
    EXPECT_FALSE(Parse({"--view-host", wrong}, exit_code).has_value()) << wrong;
  }
  EXPECT_FALSE(Parse({"--view-url", "traces.example"}, exit_code).has_value());
  EXPECT_FALSE(Parse({"--view-url", "https://traces.example/?a=b"}, exit_code).has_value());
}

TEST(AggregatorConfig, AnswersProbesAtConfiguredPort) {
  int exit_code = -1;
  EXPECT_FALSE(Parse({}, exit_code)->probe_port.has_value());
  EXPECT_TRUE(Parse({}, exit_code)->udp_probes);
  EXPECT_EQ(Parse({"--probe-port", "9500"}, exit_code)->probe_port, 9'500);
  EXPECT_EQ(Parse({"--probe-port", "0"}, exit_code)->probe_port, 0);
  EXPECT_FALSE(Parse({"--no-udp-probes"}, exit_code)->udp_probes);
  EXPECT_FALSE(Parse({"--probe-port", "70000"}, exit_code).has_value());
  EXPECT_EQ(Parse({}, exit_code)->clock_evidence_hours, 24u);
  EXPECT_EQ(Parse({"--clock-evidence-hours", "48"}, exit_code)->clock_evidence_hours, 48u);
}

TEST(AggregatorConfig, ChecksOrderAsConfigured) {
  int exit_code = -1;
  EXPECT_TRUE(Parse({}, exit_code)->order_checks.collectives);
  EXPECT_TRUE(Parse({}, exit_code)->order_checks.barriers);
  EXPECT_FALSE(Parse({"--order-checks", "barriers"}, exit_code)->order_checks.collectives);
  EXPECT_TRUE(Parse({"--order-checks", "barriers"}, exit_code)->order_checks.barriers);
  EXPECT_TRUE(Parse({"--order-checks=barriers,collectives"}, exit_code)->order_checks.collectives);
  EXPECT_FALSE(Parse({"--order-checks", "none"}, exit_code)->order_checks.any());
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(Parse({"--order-checks", "none,barriers"}, exit_code).has_value());
  EXPECT_EQ(exit_code, 2);
  EXPECT_FALSE(Parse({"--order-checks", "steps"}, exit_code).has_value());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--order-checks"));
}

TEST(AggregatorConfig, RejectsUnknownDurability) {
  int exit_code = -1;
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(Parse({"--durability", "maybe"}, exit_code).has_value());
  EXPECT_EQ(exit_code, 2);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("--durability"));
}

}  // namespace
}  // namespace neurontrace
