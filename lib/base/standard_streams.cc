// SPDX-License-Identifier: Apache-2.0
#include "lib/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "lib/base/status.h"

namespace neurontrace {

absl::Status FlushOutput() {
  errno = 0;
  std::cout.flush();  // tidy: allow(banned-word) CLI11 prints help there
  int reason = errno;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  if (errno != 0) reason = errno;
  // A write that failed before has left its error in the stream, but not its reason.
  return FailedPrecondition("cannot write to standard output{}{}: the output is incomplete",
                            reason == 0 ? "" : ": ", reason == 0 ? "" : std::strerror(reason));
}

int ExitCodeAfterOutput(std::string_view program, int code) {
  constexpr int kFailed = 1;
  constexpr int kIncomplete = 3;
  const absl::Status status = FlushOutput();
  if (status.ok()) return code;
  Print(stderr, "{}: {}\n", program, std::string(status.message()));
  return code == 0 || code == kIncomplete ? kFailed : code;
}

void OpenStandardDescriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // open takes the lowest number that is free, which is this one.
    const int flags = descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int opened = open("/dev/null", flags);
  }
}

}  // namespace neurontrace
