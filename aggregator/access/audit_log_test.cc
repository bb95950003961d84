// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class AuditLogTest : public ::testing::Test {
 protected:
  AuditLogTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "nt_audit_XXXXXX";
    directory_ = mkdtemp(pattern.data());
    path_ = directory_ / "audit.log";
  }
  ~AuditLogTest() override { std::filesystem::remove_all(directory_); }

  static std::string Read(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  std::filesystem::path directory_;
  std::string path_;
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
  struct stat about = {};
  ASSERT_EQ(stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
}

TEST_F(AuditLogTest, GoesOnWhereTheOneBeforeEnded) {
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

TEST_F(AuditLogTest, TextsFromOutsideAreCut) {
  const auto log = AuditLog::Open(path_, clock_);
  (*log)->Write({.action = "x", .detail = std::string(10 * limits::kAuditTextBytesMax, 'y')});
  EXPECT_LT(Read(path_).size(), 2 * limits::kAuditTextBytesMax);
}

TEST_F(AuditLogTest, IsNotWrittenThroughALinkNorIntoWhatIsNoFile) {
  std::filesystem::create_symlink(directory_ / "elsewhere", path_);
  EXPECT_FALSE(AuditLog::Open(path_, clock_).ok());
  EXPECT_FALSE(std::filesystem::exists(directory_ / "elsewhere"));
  EXPECT_THAT(std::string(AuditLog::Open(directory_, clock_).status().message()),
              HasSubstr("cannot be written"));
  const std::string fifo = directory_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(AuditLog::Open(fifo, clock_).ok());
}

TEST_F(AuditLogTest, WhatCannotBeWrittenIsCountedAndTheNextIsTried) {
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
