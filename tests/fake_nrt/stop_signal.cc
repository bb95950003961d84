// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/stop_signal.h"

#include <dlfcn.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace neurontrace {

int64_t TrueNow() {
  using Reader = int64_t (*)();
  static const auto given = reinterpret_cast<Reader>(dlsym(RTLD_DEFAULT, "neurontrace_true_ns"));
  if (given != nullptr) return given();
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

StopSignal::StopSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) std::abort();
}

StopSignal::~StopSignal() { close(fd_); }

void StopSignal::Raise() {
  const uint64_t one = 1;
  if (write(fd_, &one, sizeof(one)) < 0) {
    // Full: raised already.
  }
}

bool StopSignal::WaitUntil(int64_t true_ns) const {
  while (true) {
    const int64_t left = std::max<int64_t>(0, true_ns - TrueNow());
    const timespec timeout = {.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    pollfd raised = {.fd = fd_, .events = POLLIN};
    if (ppoll(&raised, 1, &timeout, nullptr) > 0) return true;
    if (TrueNow() >= true_ns) return false;
  }
}

}  // namespace neurontrace
