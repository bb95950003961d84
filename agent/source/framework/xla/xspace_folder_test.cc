// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xspace_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class XSpaceFolderTest : public ::testing::Test {
 protected:
  absl::Status Save(const std::string& bytes) {
    return SaveXSpace(directory_.path(), "session", "worker", bytes);
  }
  std::string Content() const {
    std::ifstream file(directory_.path() + "/session/worker.xplane.pb", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  TemporaryDirectory directory_;
};

TEST_F(XSpaceFolderTest, WritesTheWholeFileForItsGroup) {
  const std::string bytes(3'000'000, 'x');
  ASSERT_TRUE(Save(bytes).ok());
  EXPECT_EQ(Content(), bytes);
  struct stat status {};
  ASSERT_EQ(stat((directory_.path() + "/session/worker.xplane.pb").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07027, 0u);
  EXPECT_FALSE(std::filesystem::exists(directory_.path() + "/session/worker.xplane.pb.tmp"));
}

TEST_F(XSpaceFolderTest, NothingThatExistsIsFollowedOrReplaced) {
  const std::string elsewhere = directory_.path() + "/elsewhere";
  std::filesystem::create_directory(elsewhere);
  std::filesystem::create_directory_symlink(elsewhere, directory_.path() + "/session");
  EXPECT_EQ(Save("x").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere));
  std::filesystem::remove(directory_.path() + "/session");
  ASSERT_TRUE(Save("first").ok());
  EXPECT_EQ(Save("second").code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Content(), "first");
}

TEST_F(XSpaceFolderTest, FailuresNameThePath) {
  const absl::Status failed = SaveXSpace(directory_.path() + "/gone", "session", "worker", "x");
  EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()), HasSubstr(directory_.path() + "/gone"));
}

}  // namespace
}  // namespace neurontrace
