// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace neurontrace::cli {
namespace {

using ::testing::StartsWith;

class DaemonProcessTest : public testing::Test {
 protected:
  DaemonProcessTest() {
    setenv("NEURONTRACE_TRIGGERS", "/not/there", 1);
    setenv("NEURONTRACE_INSTANCE_ID", "i-here", 1);
    setenv("DAEMON_PROCESS_TEST", "stays", 1);
  }
  ~DaemonProcessTest() override {
    for (const char* const name :
         {"NEURONTRACE_TRIGGERS", "NEURONTRACE_INSTANCE_ID", "DAEMON_PROCESS_TEST"}) {
      unsetenv(name);
    }
  }
  // What the environment of a program is that we start.
  static absl::StatusOr<std::string> Printed(const std::string& name) {
    auto daemon =
        DaemonProcess::Start({"/usr/bin/env"}, testing::TempDir() + "/daemon_process_test.log");
    if (!daemon.ok()) return daemon.status();
    return (*daemon)->WaitForLine(name + "=", 10'000, [] { return false; });
  }
};

TEST_F(DaemonProcessTest, IgnoresSiteOptions) {
  EXPECT_FALSE(Printed("NEURONTRACE_TRIGGERS").ok());
  EXPECT_EQ(Printed("DAEMON_PROCESS_TEST").value_or(""), "stays");
  EXPECT_EQ(Printed("NEURONTRACE_INSTANCE_ID").value_or(""), "i-here");
}

// Returns the failure of a program that does not print the awaited line.
std::string FailureOf(const std::vector<std::string>& command) {
  auto daemon = DaemonProcess::Start(command, testing::TempDir() + "/daemon_process_test.log");
  if (!daemon.ok()) return daemon.status().ToString();
  return std::string(
      (*daemon)->WaitForLine("ready", 10'000, [] { return false; }).status().message());
}

TEST_F(DaemonProcessTest, DistinguishesPartialLineFromExit) {
  EXPECT_THAT(FailureOf({"/bin/cat", "/dev/zero"}),
              StartsWith("cat printed more than 64 KiB without a line break;"));
  EXPECT_THAT(FailureOf({"/bin/true"}), StartsWith("true exited before it was ready;"));
}

}  // namespace
}  // namespace neurontrace::cli
