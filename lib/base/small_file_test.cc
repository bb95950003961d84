// SPDX-License-Identifier: Apache-2.0
// Real files in a directory of the test's own: what is no small regular file is refused with its
// name, and another version of a file has another mark.
#include "lib/base/small_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "lib/base/reloaded_file.h"

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

TEST_F(SmallFileTest, RejectsNonFiles) {
  EXPECT_TRUE(absl::IsNotFound(ReadSmallFile(directory_ / "none", 9).status()));
  EXPECT_THAT(std::string(ReadSmallFile(directory_, 9).status().message()),
              HasSubstr("is not a regular file"));
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadSmallFile(fifo, 9).status().message()),
              HasSubstr("is not a regular file"));
}

TEST_F(SmallFileTest, ReportsFileOfFailingDisk) {
  std::filesystem::create_symlink("/proc/self/mem", directory_ / "bad");
  EXPECT_THAT(std::string(ReadSmallFile(directory_ / "bad", 9).status().message()),
              HasSubstr("/bad cannot be read: Input/output error"));
}

TEST_F(SmallFileTest, ATokenIsOneLineThatFitsIntoAHeader) {
  const auto problem = [this](const std::string& text) {
    return std::string(ReadTokenFile(Write("token", text), 20).status().message());
  };
  EXPECT_EQ(*ReadTokenFile(Write("token", "abc.def \r\n"), 20), "abc.def");
  EXPECT_THAT(problem("\n"), HasSubstr("/token is empty"));
  EXPECT_THAT(problem("two\nlines\n"), HasSubstr("/token has more than one line"));
  EXPECT_THAT(problem("caf\xc3\xa9"), HasSubstr("/token has invalid characters"));
  EXPECT_THAT(problem("\xff"), HasSubstr("/token has invalid characters"));
  EXPECT_THAT(problem(std::string(21, 'x')), HasSubstr("is larger than"));
  EXPECT_TRUE(absl::IsNotFound(ReadTokenFile(directory_ / "none", 20).status()));
}

TEST_F(SmallFileTest, AnotherVersionHasAnotherMark) {
  const std::string path = Write("f", "1");
  const FileVersion before = MarkOf(path);
  EXPECT_EQ(MarkOf(path), before);
  Write("g", "1");
  std::filesystem::rename(directory_ / "g", path);
  EXPECT_NE(MarkOf(path), before);
  EXPECT_EQ(MarkOf(directory_ / "none"), FileVersion());
}

TEST_F(SmallFileTest, AMarkProvesNothingOfAYoungFile) {
  const FileVersion mark{.changed_ns = 10'000'000'000};
  EXPECT_TRUE(mark.WasRecentAt(11'000'000'000));
  EXPECT_FALSE(mark.WasRecentAt(13'000'000'000));
}

TEST_F(SmallFileTest, AReloadedFileKeepsItsLastGoodVersion) {
  SystemClock clock;
  const auto read = [](const std::string& path) -> absl::StatusOr<std::string> {
    const auto text = ReadSmallFile(path, 9);
    if (text.ok() && *text == "bad") return absl::InvalidArgumentError("it is bad");
    return text;
  };
  ReloadedFile<std::string> file(directory_ / "f", read, clock);
  EXPECT_TRUE(absl::IsNotFound(file.Load()));
  EXPECT_THAT(file.problem(), HasSubstr("no such file"));
  Write("f", "1");
  EXPECT_TRUE(file.Poll(false));
  EXPECT_EQ(file.contents(), "1");
  EXPECT_EQ(file.problem(), "");
  EXPECT_FALSE(file.Poll(true)) << "it is the same";
  for (const bool is_news : {true, false}) {
    Write("f", "bad");
    EXPECT_EQ(file.Poll(true), is_news);
    EXPECT_EQ(file.contents(), "1");
    EXPECT_EQ(file.problem(), "it is bad");
  }
  std::filesystem::remove(directory_ / "f");
  EXPECT_TRUE(file.Poll(false));
  EXPECT_THAT(file.problem(), HasSubstr("no such file"));
  Write("f", "1");
  EXPECT_TRUE(file.Poll(false)) << "the problem is gone";
  EXPECT_EQ(file.problem(), "");
}

}  // namespace
}  // namespace neurontrace
