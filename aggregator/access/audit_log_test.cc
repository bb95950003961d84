// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class AuditLogTest : public ::testing::Test {
 protected:
  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  static unsigned Mode(const std::string& path) {
    struct stat about = {};
    EXPECT_EQ(stat(path.c_str(), &about), 0);
    return about.st_mode & 0777;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "audit.log";
  FakeClock clock_{1'700'000'000'123'000'000};
};

TEST_F(AuditLogTest, WritesAnObjectALine) {
  const auto log = AuditLog::Open(path_, clock_);
  ASSERT_TRUE(log.ok()) << log.status();
  (*log)->Write({.action = "capture.start",
                 .caller = "alice",
                 .role = "operator",
                 .from = "ipv4:10.0.0.9:4711",
                 .capture = "01J",
                 .job = "a \"b\"\n"});
  (*log)->Write({.action = "call", .outcome = absl::PermissionDeniedError("x is a viewer")});
  (*log)->Write({.action = "call", .outcome = absl::ResourceExhaustedError("too many")});
  (*log)->Write({.action = "export", .outcome = absl::DataLossError("gone")});
  EXPECT_EQ(Read(path_),
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"action\":\"capture.start\",\"caller\":"
            "\"alice\",\"role\":\"operator\",\"from\":\"ipv4:10.0.0.9:4711\",\"capture\":\"01J\","
            "\"job\":\"a \\\"b\\\"?\",\"outcome\":\"done\"}\n"
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"action\":\"call\",\"outcome\":\"refused\","
            "\"reason\":\"x is a viewer\"}\n"
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"action\":\"call\",\"outcome\":\"refused\","
            "\"reason\":\"too many\"}\n"
            "{\"time\":\"2023-11-14T22:13:20.123Z\",\"action\":\"export\",\"outcome\":\"failed\","
            "\"reason\":\"gone\"}\n");
  EXPECT_EQ((*log)->failed(), 0u);
  EXPECT_EQ(Mode(path_), 0600u);
}

TEST_F(AuditLogTest, AppendsToExistingLog) {
  (*AuditLog::Open(path_, clock_))->Write({.action = "first"});
  (*AuditLog::Open(path_, clock_))->Write({.action = "second"});
  EXPECT_THAT(Read(path_), AllOf(HasSubstr("first"), HasSubstr("second")));
}

TEST_F(AuditLogTest, IsRenamedWhenItIsFull) {
  const auto log = AuditLog::Open(path_, clock_, 100);
  for (const char* const action : {"first", "second", "third"}) (*log)->Write({.action = action});
  EXPECT_THAT(Read(path_), HasSubstr("third"));
  EXPECT_THAT(Read(path_ + ".1"), HasSubstr("second"));
  EXPECT_EQ((*log)->failed(), 0u);
}

TEST_F(AuditLogTest, GoesIntoANewFileAfterARotation) {
  const auto log = AuditLog::Open(path_, clock_);
  (*log)->Write({.action = "first"});
  std::filesystem::rename(path_, path_ + "-20261126");
  (*log)->Write({.action = "second"});
  EXPECT_EQ(Mode(path_), 0600u);
  std::filesystem::remove(path_);
  (*log)->Write({.action = "third"});
  EXPECT_THAT(Read(path_ + "-20261126"), AllOf(HasSubstr("first"), Not(HasSubstr("second"))));
  EXPECT_THAT(Read(path_), AllOf(HasSubstr("third"), Not(HasSubstr("second"))));
  EXPECT_EQ(Mode(path_), 0600u);
  std::filesystem::rename(path_, path_ + "-20261127");
  (*log)->Reopen();  // as with SIGHUP
  EXPECT_EQ(Read(path_), "");
  EXPECT_EQ((*log)->failed(), 0u);
}

TEST_F(AuditLogTest, IsClosedToOthersWhoeverCreatedIt) {
  const auto log = AuditLog::Open(path_, clock_);
  const std::pair<unsigned, unsigned> kModes[] = {{0644, 0640}, {0666, 0660}, {0604, 0600}};
  for (const auto& [mode, expected] : kModes) {
    std::filesystem::remove(path_);
    std::ofstream(path_).flush();  // as logrotate's "create"
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    (*log)->Write({.action = "a line"});
    EXPECT_EQ(Mode(path_), expected);
    EXPECT_THAT(Read(path_), HasSubstr("a line"));
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);  // of the file that is open
    (*log)->Write({.action = "another"});
    EXPECT_EQ(Mode(path_), expected);
  }
}

TEST_F(AuditLogTest, KeepsWritingWhereNoNewFileCanBeMade) {
  const auto log = AuditLog::Open(path_, clock_);
  std::filesystem::rename(path_, path_ + ".old");
  std::filesystem::create_symlink("elsewhere", path_);
  (*log)->Write({.action = "first"});
  EXPECT_THAT(Read(path_ + ".old"), HasSubstr("first"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "elsewhere"));
  EXPECT_EQ((*log)->failed(), 1u);
}

TEST_F(AuditLogTest, TextsFromOutsideAreCut) {
  const auto log = AuditLog::Open(path_, clock_);
  (*log)->Write({.action = "x", .detail = std::string(10 * limits::kAuditTextBytesMax, 'y')});
  EXPECT_LT(Read(path_).size(), 2 * limits::kAuditTextBytesMax);
}

TEST_F(AuditLogTest, RefusesLinksAndNonFiles) {
  std::filesystem::create_symlink(directory_ / "elsewhere", path_);
  EXPECT_FALSE(AuditLog::Open(path_, clock_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "elsewhere"));
  EXPECT_THAT(std::string(AuditLog::Open(directory_.path(), clock_).status().message()),
              HasSubstr("cannot be written"));
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(AuditLog::Open(fifo, clock_).ok());
}

TEST_F(AuditLogTest, CountsFailedWriteAndRetriesNext) {
  const auto log = AuditLog::Open(path_, clock_, 10);
  (*log)->Write({.action = "first"});
  std::filesystem::create_directory(path_ + ".1");
  (*log)->Write({.action = "second"});
  (*log)->Write({.action = "third"});
  EXPECT_EQ((*log)->failed(), 2u);
  std::filesystem::remove(path_ + ".1");
  (*log)->Write({.action = "fourth"});
  EXPECT_EQ((*log)->failed(), 2u);
  EXPECT_THAT(Read(path_), HasSubstr("fourth"));
}

}  // namespace
}  // namespace neurontrace
