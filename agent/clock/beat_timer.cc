// SPDX-License-Identifier: Apache-2.0
#include "agent/clock/beat_timer.h"

#include <sys/timerfd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace neurontrace {

absl::StatusOr<std::unique_ptr<BeatTimer>> BeatTimer::Start(TaskRunner& runner,
                                                            uint64_t interval_ns,
                                                            std::function<void()> on_beat) {
  UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return Unavailable("timerfd_create: {}", strerror(errno));
  const timespec interval{.tv_sec = static_cast<time_t>(interval_ns / 1'000'000'000),
                          .tv_nsec = static_cast<long>(interval_ns % 1'000'000'000)};
  const itimerspec times{.it_interval = interval, .it_value = interval};
  if (timerfd_settime(timer.get(), 0, &times, nullptr) != 0) {
    return Unavailable("timerfd_settime: {}", strerror(errno));
  }
  std::unique_ptr<BeatTimer> beat(new BeatTimer(runner, std::move(timer)));
  const int fd = beat->fd();
  runner.AddReadableWatch(fd, [fd, on_beat = std::move(on_beat)] {
    uint64_t beats = 0;
    if (read(fd, &beats, sizeof(beats)) == sizeof(beats)) on_beat();
  });
  return beat;
}

BeatTimer::~BeatTimer() { runner_.RemoveReadableWatch(timer_.get()); }

}  // namespace neurontrace
