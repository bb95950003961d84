// SPDX-License-Identifier: Apache-2.0
#include "lib/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace neurontrace {
namespace {

// The exit code of a child in which `run` is called with this as standard output; -1: closed.
int ExitCodeWith(int output, const std::function<int()>& run) {
  std::fflush(stdout);  // what the test program has printed is not the child's to print
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    if (output >= 0) dup2(output, STDOUT_FILENO);
    const int silent = open("/dev/null", O_WRONLY);
    if (silent != STDERR_FILENO) dup2(silent, STDERR_FILENO);
    if (output < 0) close(silent);  // it may have become standard output
    _exit(run());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int PrintAndExit(size_t bytes, int code) {
  Print("{}", std::string(bytes, 'x'));
  return ExitCodeAfterOutput("test", code);
}

TEST(StandardStreamsTest, OutputThatIsLostIsAFailure) {
  const int full = open("/dev/full", O_WRONLY);
  const int null = open("/dev/null", O_WRONLY);
  ASSERT_GE(full, 0);
  for (const size_t bytes : {1u, 100'000u}) {  // less than a buffer, and more than one
    EXPECT_EQ(ExitCodeWith(null, [&] { return PrintAndExit(bytes, 0); }), 0);
    EXPECT_EQ(ExitCodeWith(full, [&] { return PrintAndExit(bytes, 0); }), 1);
    EXPECT_EQ(ExitCodeWith(full, [&] { return PrintAndExit(bytes, 3); }), 1);
    EXPECT_EQ(ExitCodeWith(full, [&] { return PrintAndExit(bytes, 2); }), 2);
  }
  EXPECT_EQ(ExitCodeWith(full, [] { return ExitCodeAfterOutput("test", 0); }), 0) << "none is lost";
  close(full);
  close(null);
}

TEST(StandardStreamsTest, AClosedDescriptorIsNobodyElses) {
  EXPECT_EQ(ExitCodeWith(-1,
                         [] {
                           OpenStandardDescriptors();
                           if (open("/dev/null", O_WRONLY) <= STDERR_FILENO) return 9;
                           return PrintAndExit(1, 0);
                         }),
            1);
}

}  // namespace
}  // namespace neurontrace
