// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace neurontrace::cli {

InterruptWatcher::InterruptWatcher(std::function<void(int)> on_interrupt)
    : on_interrupt_(std::move(on_interrupt)) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGINT);
  sigaddset(&mask, SIGTERM);
  // signalfd(2) delivers only signals that are blocked in all threads.
  pthread_sigmask(SIG_BLOCK, &mask, &old_mask_);
  signal_fd_ = signalfd(-1, &mask, SFD_CLOEXEC);
  end_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { Watch(); });
}

InterruptWatcher::~InterruptWatcher() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(end_fd_, &one, sizeof(one));
  thread_.join();
  close(signal_fd_);
  close(end_fd_);
  // The destructor must run on the thread of the constructor, because masks belong to threads.
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

void InterruptWatcher::Redirect(std::function<void(int)> on_interrupt) {
  const MutexLock lock(mutex_);
  on_interrupt_ = std::move(on_interrupt);
  count_ = 0;
}

void InterruptWatcher::Watch() {
  for (;;) {
    pollfd fds[2] = {{signal_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}};
    if (poll(fds, 2, -1) < 0) continue;  // EINTR
    if (fds[1].revents != 0) return;
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    const MutexLock lock(mutex_);
    // Called under the mutex, so that Redirect returns only when no call is in progress.
    on_interrupt_(++count_);
  }
}

}  // namespace neurontrace::cli
