// SPDX-License-Identifier: Apache-2.0
// Real files in a directory of the test's own: what is no small regular file is refused with its
// name, and another version of a file has another mark.
#include "base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class SmallFileTest : public ::testing::Test {
 protected:
  SmallFileTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nt_small_file_XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~SmallFileTest() override { std::filesystem::remove_all(directory_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  std::filesystem::path directory_;
};

TEST_F(SmallFileTest, ReadsUpToTheLimit) {
  const std::string path = Write("f", "12345");
  EXPECT_EQ(*ReadSmallFile(path, 5), "12345");
  EXPECT_THAT(std::string(ReadSmallFile(path, 4).status().message()),
              HasSubstr("/f is larger than 4 bytes"));
}

TEST_F(SmallFileTest, RefusesWhatIsNoFile) {
  EXPECT_TRUE(absl::IsNotFound(ReadSmallFile(directory_ / "none", 9).status()));
  EXPECT_THAT(std::string(ReadSmallFile(directory_, 9).status().message()),
              HasSubstr("is no regular file"));
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadSmallFile(fifo, 9).status().message()),
              HasSubstr("is no regular file"));
}

TEST_F(SmallFileTest, AnotherVersionHasAnotherMark) {
  const std::string path = Write("f", "1");
  const FileMark before = MarkOf(path);
  EXPECT_EQ(MarkOf(path), before);
  Write("g", "1");
  std::filesystem::rename(directory_ / "g", path);
  EXPECT_NE(MarkOf(path), before);
  EXPECT_EQ(MarkOf(directory_ / "none"), FileMark());
}

TEST_F(SmallFileTest, AMarkProvesNothingOfAYoungFile) {
  const FileMark mark{.changed_ns = 10'000'000'000};
  EXPECT_TRUE(mark.WasYoungAt(11'000'000'000));
  EXPECT_FALSE(mark.WasYoungAt(13'000'000'000));
}

}  // namespace
}  // namespace neurontrace
