// SPDX-License-Identifier: Apache-2.0
#include "simulate/stream_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "lib/base/temporary_directory.h"
#include "simulate/replay_fleet.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kNowNs = 1'750'000'000'000'000'000;

TEST(ReplayPaceTest, TimeOfTheRunGoesBySpeed) {
  const ReplayPace pace{.begun_monotonic_ns = 1'000, .start_ns = kNowNs, .speed = 20};
  EXPECT_EQ(pace.TrueAt(1'000), kNowNs);
  EXPECT_EQ(pace.TrueAt(1'050), kNowNs + 1'000);
}

TEST(ReplayPaceTest, AFastRunEndsAtThePresent) {
  FleetPlan plan;  // of 20 s
  EXPECT_EQ(ReplayStartNs(plan, 1, kNowNs), kNowNs);
  EXPECT_EQ(ReplayStartNs(plan, 0.5, kNowNs), kNowNs);
  EXPECT_EQ(ReplayStartNs(plan, 20, kNowNs), kNowNs - 19'000'000'000);
  plan.faults = {*ParsePlannedFault("hang-not-entered@1+50-100")};
  EXPECT_EQ(ReplayStartNs(plan, 20, kNowNs), kNowNs - 38'000'000'000);  // and 20 s of the hang
}

TEST(ReplayNeedsTest, NameWhatIsMissingAndWhatHelps) {
  FleetPlan plan;
  plan.dp = 1'250;
  plan.tp = 4;
  plan.pp = 2;
  const ReplayNeeds needs = NeedsOfReplay(plan);
  EXPECT_TRUE(CheckReplayNeeds(needs, needs).ok());
  const auto files = CheckReplayNeeds(needs, {1'024, needs.memory_bytes});
  EXPECT_EQ(files.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(files.message()), HasSubstr("ulimit -Hn"));
  const auto memory = CheckReplayNeeds(needs, {needs.descriptors, needs.memory_bytes - 1});
  EXPECT_THAT(std::string(memory.message()), HasSubstr("MiB of memory"));
  // An instance for each rank costs more of both.
  plan.cores_per_process = plan.processes_per_instance = 1;
  EXPECT_GT(NeedsOfReplay(plan).descriptors, 10 * needs.descriptors);
}

TEST(StreamOptionsTest, AreCheckedBeforeAnythingStarts) {
  const TemporaryDirectory directory;
  StreamOptions options;
  options.out = directory.path() + "/run";
  EXPECT_TRUE(CheckStreamOptions(options).ok()) << CheckStreamOptions(options);
  for (const double speed : {0.0, -1.0, 101.0}) {
    options.speed = speed;
    EXPECT_THAT(std::string(CheckStreamOptions(options).message()), HasSubstr("--speed"));
  }
  options.speed = 1;
  options.aggregator = "nowhere";
  EXPECT_THAT(std::string(CheckStreamOptions(options).message()), HasSubstr("--aggregator"));
  options.aggregator = "collector.example:9400";  // in plain text
  EXPECT_FALSE(CheckStreamOptions(options).ok());
  options.aggregator = "127.0.0.1:9400";
  options.security.token_file = "agent.token";
  EXPECT_THAT(std::string(CheckStreamOptions(options).message()), HasSubstr("--wait-for-capture"));
  options.security = {};
  std::filesystem::create_directory(options.out);
  std::ofstream(options.out + "/golden.json") << "{}";
  EXPECT_EQ(CheckStreamOptions(options).code(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace neurontrace
