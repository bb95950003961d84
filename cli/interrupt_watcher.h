// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <functional>
#include <thread>

namespace neurontrace::cli {

// While it lives, SIGINT and SIGTERM do not kill the program: `on_interrupt` is called with their
// count (1, 2, …) on a thread of the watcher's. Make it before any other thread, so that they all
// leave the signals to it.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(std::function<void(int)> on_interrupt);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  void Watch();

  std::function<void(int)> on_interrupt_;
  sigset_t old_mask_;
  int signal_fd_;
  int end_fd_;
  std::thread thread_;
};

}  // namespace neurontrace::cli
