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
  // Both libraries buffer on their own: CLI11 prints through iostreams, all other output goes
  // through stdio.
  std::cout.flush();  // tidy: allow(banned-word) CLI11 prints help there
  int reason = errno;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return absl::OkStatus();
  if (errno != 0) reason = errno;
  // A write that failed earlier has left its error in the stream, but not its reason.
  return FailedPrecondition("cannot write to standard output{}{}: the output is incomplete",
                            reason == 0 ? "" : ": ", reason == 0 ? "" : std::strerror(reason));
}

int ExitCodeAfterOutput(std::string_view program, int code) {
  constexpr int kFailed = 1;
  // The exit code of the command line for a result that is there but incomplete: lost output is
  // worse.
  constexpr int kIncomplete = 3;
  const absl::Status status = FlushOutput();
  if (status.ok()) return code;
  Print(stderr, "{}: {}\n", program, std::string(status.message()));
  return code == 0 || code == kIncomplete ? kFailed : code;
}

void OpenStandardDescriptors() {
  for (int descriptor = 0; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // open takes the lowest number that is free, which is this one. Standard output is opened for
    // reading, so that writes to it fail and FlushOutput reports the loss; errors have no other
    // place to go and are dropped.
    const int flags = descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    [[maybe_unused]] const int opened = open("/dev/null", flags);
  }
}

}  // namespace neurontrace
