// SPDX-License-Identifier: Apache-2.0
// `capture`, `capture start` and `capture stop` each have options of their own, on the command line
// and in files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;

class CaptureTextTest : public CommandLineTest {
 protected:
  CaptureTextTest() { service_.spec.set_name("nobody asked"); }

  void WriteConfig(const std::string& text) {
    std::ofstream(config_) << text;
    config_places_ = {{config_, "user file", true}};
  }

  const std::string config_ = testing::TempDir() + "/cli_capture_words.conf";
  const std::string path_ = testing::TempDir() + "/cli_capture_words.json";
};

TEST_F(CaptureTextTest, RejectsOptionsUnknownToSubcommand) {
  EXPECT_EQ(RunCli({"capture", "start", "-o", path_.c_str()}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--out does not apply to neurontrace capture start"));
  EXPECT_THAT(err_, HasSubstr("neurontrace capture stop ID -o FILE"));
  EXPECT_EQ(RunCli({"capture", "--job", "a", "start", "--job", "b"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--job must come after start: neurontrace capture start --job"));
  EXPECT_EQ(service_.spec.name(), "nobody asked");
  EXPECT_EQ(RunCli({"capture", "stop", kCaptureId, "--duration", "5s"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--duration does not apply to neurontrace capture stop"));
  EXPECT_EQ(service_.stopped, "");
}

TEST_F(CaptureTextTest, StartReportsOmissionsUnlessQuiet) {
  EXPECT_EQ(RunCli({"capture", "start", "--job", "b"}), kExitDone);
  EXPECT_EQ(out_, std::string(kCaptureId) + "\n");
  EXPECT_EQ(err_, "omitting allocation events; --all-events includes them\n");
  EXPECT_EQ(service_.spec.job(), "b");
  for (const char* const word : {"start", "--duration=1s"}) {
    EXPECT_EQ(RunCli({"-q", "capture", word}), kExitDone);
    EXPECT_EQ(err_, "");
  }
}

TEST_F(CaptureTextTest, SectionsBelongToOneSubcommand) {
  WriteConfig(
      "[capture]\n"
      "name = \"mine\"\n"
      "[capture.start]\n"
      "ring-events = 131072\n"
      "[capture.stop]\n"
      "out = \"" +
      path_ + "\"\n[flight-recorder.off]\njob = \"other\"\n");
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitDone);
  EXPECT_EQ(service_.spec.name(), "mine");
  EXPECT_EQ(service_.spec.ring_events_per_core(), 0u);
  EXPECT_EQ(service_.export_request.capture_id(), "") << "that is of capture stop";
  EXPECT_EQ(RunCli({"capture", "start"}), kExitDone);
  EXPECT_EQ(service_.spec.name(), "");
  EXPECT_EQ(service_.spec.ring_events_per_core(), 131'072u);
  EXPECT_EQ(RunCli({"capture", "stop", kCaptureId}), kExitDone);
  EXPECT_EQ(service_.export_request.capture_id(), kCaptureId);
  service_.stored = {service_.capture};
  service_.stored[0].set_state(v1::CAPTURE_STATE_RECORDING);
  service_.stored[0].mutable_spec()->set_mode(v1::CAPTURE_MODE_FLIGHT_RECORDER);
  service_.stored[0].mutable_spec()->set_job("llama");
  EXPECT_EQ(RunCli({"flight-recorder", "status"}), kExitDone) << "job is of flight-recorder off";
}

TEST_F(CaptureTextTest, CommandLineOverridesFile) {
  WriteConfig(
      "[capture]\n"
      "duration = \"30s\"\n"
      "max-size = \"2GB\"\n"
      "keep = \"10m\"\n"
      "all-events = true\n"
      "out = \"" +
      path_ + "\"\n");
  EXPECT_EQ(RunCli({"capture", "--last", "20s"}), kExitDone) << err_;
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_SNAPSHOT);
  EXPECT_EQ(service_.spec.duration_ns(), 0u);
  EXPECT_FALSE(service_.spec.all_events());
  EXPECT_EQ(RunCli({"capture", "--event-type", "hardware"}), kExitDone) << err_;
  EXPECT_EQ(service_.spec.duration_ns(), 30'000'000'000u);
  EXPECT_EQ(service_.spec.retention_ns(), 0u);
  service_.capture.set_state(v1::CAPTURE_STATE_RECORDING);
  service_.export_request.Clear();
  EXPECT_EQ(RunCli({"capture", "--continuous"}), kExitDone) << err_;
  EXPECT_EQ(service_.spec.mode(), v1::CAPTURE_MODE_CONTINUOUS);
  EXPECT_EQ(service_.spec.retention_ns(), 600'000'000'000u);
  EXPECT_EQ(service_.spec.bytes_max(), 0u);
  EXPECT_EQ(service_.export_request.capture_id(), "") << "a continuous capture has no end";
}

TEST_F(CaptureTextTest, ReportsLineOfFileError) {
  WriteConfig("[capture]\nall-events = true\nevent-type = \"hardware\"\n");
  EXPECT_EQ(RunCli({"capture", "--duration", "1s"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--all-events is set in " + config_ + ":2"));
  EXPECT_THAT(err_, HasSubstr("--event-type is set in " + config_ + ":3"));
  EXPECT_EQ(service_.spec.name(), "nobody asked");
}

}  // namespace
}  // namespace neurontrace::cli
