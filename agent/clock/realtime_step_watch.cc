// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/realtime_step_watch.h"

#include <sys/timerfd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/status.h"

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET (1 << 1)
#endif

namespace neurontrace {
namespace {

bool Arm(int timer) {
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();  // the kernel makes it its own end
  return timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, nullptr) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RealtimeStepWatch>> RealtimeStepWatch::Start(
    TaskRunner& runner, std::function<void()> on_step) {
  UniqueFd timer(timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid() || !Arm(timer.get())) {
    return Unavailable("a timer that tells when REALTIME is set: {}", strerror(errno));
  }
  const int fd = timer.get();
  std::unique_ptr<RealtimeStepWatch> watch(new RealtimeStepWatch(runner, std::move(timer)));
  runner.AddReadableWatch(fd, [fd, on_step = std::move(on_step)] {
    uint64_t expirations = 0;
    if (read(fd, &expirations, sizeof(expirations)) >= 0 || errno != ECANCELED) return;
    Arm(fd);  // before the snapshot: a step during it is told again
    on_step();
  });
  return watch;
}

RealtimeStepWatch::~RealtimeStepWatch() { runner_.RemoveReadableWatch(timer_.get()); }

}  // namespace neurontrace
