// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <thread>

#include "lib/base/mutex.h"

namespace neurontrace::cli {

// While it lives, SIGINT and SIGTERM do not kill the program: `on_interrupt` is called with their
// count (1, 2, …) on the watcher's thread. Constructed before any other thread, so that all threads
// inherit the blocked signals and leave them to this one.
// thread: interrupts: waits for SIGINT and SIGTERM
class InterruptWatcher {
 public:
  // Blocks both signals in this thread and in all threads that start later.
  explicit InterruptWatcher(std::function<void(int)> on_interrupt);
  // Waits for a running call of `on_interrupt`, ends the thread and restores the mask of signals.
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  // Calls `on_interrupt` instead from now on, with counts from 1. When it returns, no call of the
  // former function is in progress. Must not be called by one of them.
  void Redirect(std::function<void(int)> on_interrupt);

 private:
  void Watch();

  Mutex mutex_;
  std::function<void(int)> on_interrupt_ NT_GUARDED_BY(mutex_);
  int count_ NT_GUARDED_BY(mutex_) = 0;
  // The mask of the constructing thread before the construction.
  sigset_t old_mask_;
  // Yields the signals, and the end: both are closed by the destructor.
  int signal_fd_;
  int end_fd_;
  std::thread thread_;
};

// Remembers that the program is to end, so that a thread can wait for it. Any thread.
class Interrupt {
 public:
  void Set() {
    const MutexLock lock(mutex_);
    is_set_ = true;
    set_.NotifyAll();
  }
  bool is_set() const {
    const MutexLock lock(mutex_);
    return is_set_;
  }
  void Wait() {
    MutexLock lock(mutex_);
    set_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return is_set_; });
  }
  // Returns whether it was set before the time had passed.
  bool WaitFor(std::chrono::nanoseconds time) {
    MutexLock lock(mutex_);
    return set_.WaitFor(mutex_, time, [this]() NT_REQUIRES(mutex_) { return is_set_; });
  }

 private:
  mutable Mutex mutex_;
  CondVar set_;
  bool is_set_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace::cli
