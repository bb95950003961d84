// SPDX-License-Identifier: Apache-2.0
// Goal: an artifact is written where any other output is: through links, into devices and pipes,
// and a file with its real name is always whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/command_test_support.h"

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ArtifactsCommandTest : public CommandLineTest {
 protected:
  ArtifactsCommandTest() {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    v1::Artifact& artifact = *service_.artifacts.add_artifacts();
    artifact.set_path("stacks/7/merged.json");
    artifact.set_kind("merged_stacks");
    artifact.set_bytes(12);
  }
  ~ArtifactsCommandTest() override { std::filesystem::remove_all(directory_); }

  int Get(const std::string& path) {
    return RunCli({"artifacts", kCaptureId, "stacks/7/merged.json", "-o", path.c_str()});
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string In(const std::string& name) const { return directory_ + "/" + name; }

  const std::string directory_ = testing::TempDir() + "/cli_artifacts";
};

TEST_F(ArtifactsCommandTest, WritesAFileWithItsName) {
  std::ofstream(In("a.json")) << "of an earlier command";
  // What a killed command left does not matter.
  std::ofstream(In("a.json.part")) << "remains";
  EXPECT_EQ(Get(In("a.json")), kExitDone) << err_;
  EXPECT_EQ(Read(In("a.json")), "first second");
  EXPECT_EQ(out_, In("a.json") + "\n");
  EXPECT_THAT(Names(), ElementsAre("a.json", "a.json.part"));
  EXPECT_EQ(Read(In("a.json.part")), "remains");
}

TEST_F(ArtifactsCommandTest, FollowsLinksAndKeepsThem) {
  std::ofstream(In("target")) << "before";
  std::filesystem::create_symlink("target", In("link"));
  EXPECT_EQ(Get(In("link")), kExitDone) << err_;
  EXPECT_EQ(Read(In("target")), "first second");
  EXPECT_TRUE(std::filesystem::is_symlink(In("link")));
  EXPECT_THAT(Names(), ElementsAre("link", "target"));
}

TEST_F(ArtifactsCommandTest, WritesIntoDevicesAndStandardOutput) {
  EXPECT_EQ(Get("/dev/null"), kExitDone) << err_;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  for (const char* const name : {"-", "/dev/stdout"}) {
    EXPECT_EQ(Get(name), kExitDone) << err_;
    EXPECT_EQ(out_, "first second");
  }
}

TEST_F(ArtifactsCommandTest, LeavesNothingOfABrokenTransfer) {
  std::ofstream(In("a.json")) << "whole";
  service_.artifact_status = {grpc::StatusCode::DATA_LOSS, "the bytes are damaged"};
  EXPECT_EQ(Get(In("a.json")), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("damaged"));
  EXPECT_EQ(Read(In("a.json")), "whole");
  EXPECT_THAT(Names(), ElementsAre("a.json"));
  EXPECT_EQ(Get(In("no/such/directory")), kExitFailed);
  EXPECT_EQ(Get(directory_), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("directory"));
}

TEST_F(ArtifactsCommandTest, ShowsHostilePaths) {
  service_.artifacts.mutable_artifacts(0)->set_path("a\x1b[2J\u202eb");
  EXPECT_EQ(RunCli({"artifacts", kCaptureId}), kExitDone) << err_;
  EXPECT_THAT(out_, HasSubstr("a?[2J\\u202eb"));
}

}  // namespace
}  // namespace neurontrace::cli
