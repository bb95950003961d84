// SPDX-License-Identifier: Apache-2.0
// What is found under an inspect directory and read from it: the vendor's layout, and nothing that
// a link or another kind of file leads to.
#include "agent/source/artifact/artifact_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ArtifactFileTest : public ::testing::Test {
 protected:
  ArtifactFileTest() {
    std::string pattern = ::testing::TempDir() + "artifact_file_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~ArtifactFileTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, std::string_view text) {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole, std::ios::binary) << text;
  }
  std::vector<std::string> Find() {
    std::vector<std::string> paths;
    bool truncated = false;
    for (const FoundArtifact& found : FindArtifacts(root_, "i-1", truncated)) {
      paths.push_back(found.place.path());
    }
    return paths;
  }

  std::string root_;
};

TEST_F(ArtifactFileTest, FindsThisInstancesFilesOfBothLayouts) {
  Write("i-1_pid_7/ntrace.pb", "a");
  Write("i-1_pid_7/1776672348756756905/trace_info.pb", "b");
  Write("i-1_pid_1_c0ffee/1776672348756756905/neff_x_vnc_0.neff", "c");
  Write("neffs/graph_x.neff", "d");
  Write("i-2_pid_7/ntrace.pb", "another instance's");
  Write("i-10_pid_7/ntrace.pb", "another instance's");
  Write("i-1_pid_7/trace.json", "no artifact");
  Write("i-1_pid_7/other/ntrace.pb", "no session");
  Write("i-1_pid_7/1776672348756756905/1776672348756756905/ntrace.pb", "too deep");
  Write("ntrace.pb", "too high");
  EXPECT_THAT(Find(), ElementsAre("i-1_pid_1_c0ffee/1776672348756756905/neff_x_vnc_0.neff",
                                  "i-1_pid_7/1776672348756756905/trace_info.pb",
                                  "i-1_pid_7/ntrace.pb", "neffs/graph_x.neff"));
}

TEST_F(ArtifactFileTest, FollowsNoLinkAndOpensNoPipe) {
  Write("elsewhere/ntrace.pb", "secret");
  std::filesystem::create_directory(root_ + "/i-1_pid_7");
  std::filesystem::create_symlink(root_ + "/elsewhere/ntrace.pb", root_ + "/i-1_pid_7/ntrace.pb");
  std::filesystem::create_directory_symlink(root_ + "/elsewhere", root_ + "/i-1_pid_8");
  ASSERT_EQ(mkfifo((root_ + "/i-1_pid_7/a.neff").c_str(), 0600), 0);
  EXPECT_THAT(Find(), IsEmpty());
  for (const auto& [directory, name] :
       {std::pair("i-1_pid_7", "ntrace.pb"), {"i-1_pid_8", "ntrace.pb"}, {"i-1_pid_7", "a.neff"}}) {
    EXPECT_FALSE(ArtifactFile::Open(root_, MakeArtifactPlace(directory, "", name).value()).ok())
        << directory << "/" << name;
  }
}

TEST_F(ArtifactFileTest, ReadsAnyPart) {
  Write("i-1_pid_7/ntrace.pb", "0123456789");
  const auto file =
      ArtifactFile::Open(root_, MakeArtifactPlace("i-1_pid_7", "", "ntrace.pb").value());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->State().value().bytes, 10u);
  EXPECT_EQ(file->Read(4, 3).value(), "456");
  EXPECT_EQ(file->Read(8, 30).value(), "89");
  EXPECT_EQ(file->Read(10, 30).value(), "");
}

TEST_F(ArtifactFileTest, MissingDirectoryHasNoFiles) {
  bool truncated = false;
  EXPECT_THAT(FindArtifacts(root_ + "/nowhere", "i-1", truncated), IsEmpty());
  EXPECT_FALSE(truncated);
}

}  // namespace
}  // namespace neurontrace
