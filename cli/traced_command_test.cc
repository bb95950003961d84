// SPDX-License-Identifier: Apache-2.0
#include "cli/traced_command.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>

namespace neurontrace::cli {
namespace {

class TracedCommandTest : public testing::Test {
 protected:
  TracedCommandTest() { sigemptyset(&mask_); }

  std::unique_ptr<TracedCommand> Prepare(std::vector<std::string> words,
                                         std::vector<TracedCommand::Variable> environment = {}) {
    auto command = TracedCommand::Prepare(words, environment, mask_);
    EXPECT_TRUE(command.ok()) << command.status();
    return *std::move(command);
  }
  // Blocks until it has ended, without taking its status away.
  static void AwaitEnd(const TracedCommand& command) {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(command.pid()), &info, WEXITED | WNOWAIT);
  }
  // Runs it to its end.
  std::unique_ptr<TracedCommand> Run(std::vector<std::string> words,
                                     std::vector<TracedCommand::Variable> environment = {}) {
    auto command = Prepare(std::move(words), std::move(environment));
    EXPECT_FALSE(command->HasEnded());
    EXPECT_EQ(command->Release(), 0);
    AwaitEnd(*command);
    EXPECT_TRUE(command->HasEnded());
    return command;
  }

  sigset_t mask_;
};

TEST_F(TracedCommandTest, KeepsTheExitCode) {
  EXPECT_EQ(Run({"true"})->exit_code(), 0);
  const auto command = Run({"sh", "-c", "exit 7"});
  EXPECT_EQ(command->exit_code(), 7);
  EXPECT_EQ(command->Outcome(), "exit code 7");
}

TEST_F(TracedCommandTest, ReportsSignalsLikeShells) {
  const auto command = Run({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(command->exit_code(), 128 + SIGTERM);
  EXPECT_EQ(command->Outcome(), "signal 15 (Terminated)");
}

TEST_F(TracedCommandTest, HasTheEnvironmentThatItWasGiven) {
  EXPECT_EQ(Run({"sh", "-c", "test \"$GIVEN\" = 'a b'"}, {{"GIVEN", "a b"}})->exit_code(), 0);
}

TEST_F(TracedCommandTest, ReleaseReturnsExecError) {
  EXPECT_EQ(Prepare({"no-such-command-of-anyone"})->Release(), ENOENT);
  EXPECT_EQ(Prepare({"/"})->Release(), EACCES);
}

TEST_F(TracedCommandTest, ASignalEndsItBeforeItsReleaseToo) {
  const auto command = Prepare({"true"});
  command->Forward(SIGTERM);
  AwaitEnd(*command);
  EXPECT_TRUE(command->HasEnded());
  EXPECT_EQ(command->exit_code(), 128 + SIGTERM);
}

TEST_F(TracedCommandTest, UnreleasedCommandDoesNotRun) {
  const std::string mark = testing::TempDir() + "/traced_command_mark";
  std::filesystem::remove(mark);
  Prepare({"touch", mark}).reset();
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(FindProgram, SearchesLikeShell) {
  const std::string base = testing::TempDir() + "/find_program";
  std::filesystem::create_directories(base + "/a");
  std::filesystem::create_directories(base + "/b/dir");
  std::ofstream(base + "/a/tool") << "no program";
  std::ofstream(base + "/b/tool") << "#!/bin/sh\n";
  chmod((base + "/a/tool").c_str(), 0644);
  chmod((base + "/b/tool").c_str(), 0755);
  const std::string path = base + "/none:" + base + "/a:" + base + "/b";
  EXPECT_EQ(FindProgram("tool", path), base + "/b/tool");
  EXPECT_EQ(FindProgram("tool", base + "/a"), base + "/a/tool");
  EXPECT_EQ(FindProgram("dir", path), "");
  EXPECT_EQ(FindProgram("other", path), "");
  EXPECT_EQ(FindProgram("./here", path), "./here");
}

TEST(WithPreload, KeepsExistingPreloads) {
  EXPECT_EQ(WithPreload("/tap.so", ""), "/tap.so");
  EXPECT_EQ(WithPreload("/tap.so", "/a.so:/b.so"), "/tap.so:/a.so:/b.so");
}

}  // namespace
}  // namespace neurontrace::cli
