// SPDX-License-Identifier: Apache-2.0
// Goal: what `validate` prints, and its exit codes. Method: the whole command line on files of a
// few bytes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_test_support.h"
#include "cli/exit_code.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A packet of sequence 1 with a flag; the second says that packets before it were lost.
constexpr std::string_view kSound("\x0a\x04\x50\x01\x68\x01", 6);
constexpr std::string_view kAfterLoss("\x0a\x07\x50\x01\x68\x01\xd0\x02\x01", 9);

class ValidateCommandTest : public CommandLineTest {
 protected:
  ValidateCommandTest() { std::filesystem::remove(path_); }
  ~ValidateCommandTest() override { std::filesystem::remove(path_); }

  int RunOn(std::string_view file, std::vector<const char*> options = {}) {
    std::ofstream(path_, std::ios::binary) << file;
    options.insert(options.begin(), {"validate", path_.c_str()});
    return RunCli(options);
  }

  const std::string path_ = testing::TempDir() + "/validate_command.pftrace";
};

TEST_F(ValidateCommandTest, ExitCodeReflectsFindings) {
  EXPECT_EQ(RunOn(kSound), kExitDone);
  EXPECT_THAT(out_, HasSubstr("\nno problems\n"));
  EXPECT_EQ(RunOn("{}"), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("error framing"));
  EXPECT_THAT(out_, HasSubstr("\n1 error, 0 warnings\n"));
}

TEST_F(ValidateCommandTest, WarningsFailWhereItIsStrict) {
  EXPECT_EQ(RunOn(kAfterLoss), kExitDone);
  EXPECT_THAT(out_, HasSubstr("warning packet_loss"));
  EXPECT_EQ(RunOn(kAfterLoss, {"--strict"}), kExitFailed);
  EXPECT_EQ(RunOn(kSound, {"--strict"}), kExitDone);
}

TEST_F(ValidateCommandTest, PrintsJson) {
  EXPECT_EQ(RunOn(kAfterLoss, {"--json"}), kExitDone);
  EXPECT_THAT(out_, StartsWith("{\n"));
  EXPECT_THAT(out_, HasSubstr("\"check\": \"packet_loss\""));
  EXPECT_THAT(out_, HasSubstr("\"warnings\": \"1\""));
  EXPECT_THAT(out_, Not(HasSubstr("\"tracks\":")));
  const std::string json = out_;
  EXPECT_EQ(RunOn(kAfterLoss, {"--output", "json"}), kExitDone);
  EXPECT_EQ(out_, json);
  EXPECT_EQ(RunOn("{}", {"--json", "--tree"}), kExitFailed);
  EXPECT_THAT(out_, HasSubstr("\"tracks\": []"));
}

TEST_F(ValidateCommandTest, AFileThatIsNotThereOrNoFile) {
  EXPECT_EQ(RunCli({"validate", path_.c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr(path_ + ": No such file or directory"));
  EXPECT_EQ(out_, "");
  EXPECT_EQ(RunCli({"validate", testing::TempDir().c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("Is a directory"));
  EXPECT_EQ(RunCli({"validate"}), kExitUsage);
  EXPECT_EQ(RunCli({"validate", path_.c_str(), "--no-such-option"}), kExitUsage);
}

TEST_F(ValidateCommandTest, ReadsStandardInput) {
  std::ofstream(path_, std::ios::binary) << kAfterLoss;
  const UniqueFd before(dup(STDIN_FILENO));
  ASSERT_TRUE(before.valid());
  {
    const UniqueFd file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(dup2(file.get(), STDIN_FILENO), STDIN_FILENO);
  }
  EXPECT_EQ(RunCli({"validate", "-"}), kExitDone);
  EXPECT_THAT(out_, HasSubstr("warning packet_loss"));
  EXPECT_EQ(dup2(before.get(), STDIN_FILENO), STDIN_FILENO);
}

}  // namespace
}  // namespace neurontrace::cli
