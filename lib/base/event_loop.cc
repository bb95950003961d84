// SPDX-License-Identifier: Apache-2.0
#include "lib/base/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lib/base/clock.h"

namespace neurontrace {
namespace {

// Aborts if the kernel has no descriptor left when a loop is made: nothing runs yet, and nothing
// could.
int CheckFd(int fd, const char* what) {
  if (fd < 0) {
    perror(what);
    abort();
  }
  return fd;
}

}  // namespace

EventLoop::EventLoop()
    : epoll_fd_(CheckFd(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_fd_(CheckFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_fd_;
  CheckFd(epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event), "epoll_ctl");
}

EventLoop::~EventLoop() {
  close(wake_fd_);
  close(epoll_fd_);
}

void EventLoop::Run() {
  {
    const MutexLock lock(mutex_);
    assert(thread_ == std::thread::id());  // one thread at a time
    thread_ = std::this_thread::get_id();
  }
  RunUntilQuit();
  const MutexLock lock(mutex_);
  thread_ = std::thread::id();
}

void EventLoop::RunUntilQuit() {
  std::vector<Task> due;
  for (;;) {
    due.clear();
    // All due tasks are taken at once, so that tasks which post others cannot starve the watched
    // descriptors.
    const int timeout_ms = TakeDueTasks(due);
    for (Task& task : due) {
      {
        const MutexLock lock(mutex_);
        if (quit_) return;
      }
      task();
      // What the task holds is released now, not when the whole batch is done.
      task = nullptr;
    }
    {
      const MutexLock lock(mutex_);
      if (quit_) return;
    }
    // A task of this batch may have posted another since the timeout was computed.
    RunReadyWatches(due.empty() ? timeout_ms : 0);
  }
}

void EventLoop::Quit() {
  {
    const MutexLock lock(mutex_);
    quit_ = true;
  }
  Wake();
}

void EventLoop::PostTask(Task task) {
  assert(task != nullptr);
  {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  Wake();
}

void EventLoop::PostDelayedTask(Task task, uint64_t delay_ns) {
  assert(task != nullptr);
  {
    const MutexLock lock(mutex_);
    delayed_tasks_.emplace(SystemClock().MonotonicNs() + delay_ns, std::move(task));
  }
  Wake();
}

void EventLoop::AddReadableWatch(int fd, Task task) {
  assert(task != nullptr && RunsTasksOnCurrentThread());
  // EEXIST is not an error: a second call replaces the task of a descriptor.
  watches_[fd] = std::make_shared<Task>(std::move(task));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST) {
    perror("epoll_ctl");
    // Only a descriptor that is not open fails here: a bug of the caller.
    abort();
  }
}

void EventLoop::RemoveReadableWatch(int fd) {
  assert(RunsTasksOnCurrentThread());
  if (watches_.erase(fd) != 0) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
}

bool EventLoop::RunsTasksOnCurrentThread() const {
  const MutexLock lock(mutex_);
  return thread_ == std::thread::id() || thread_ == std::this_thread::get_id();
}

void EventLoop::Wake() {
  const uint64_t one = 1;
  // A full eventfd fails the write, but it is readable, and that is enough to wake the loop.
  [[maybe_unused]] const ssize_t n = write(wake_fd_, &one, sizeof(one));
}

int EventLoop::TakeDueTasks(std::vector<Task>& out) {
  const MutexLock lock(mutex_);
  out.swap(tasks_);
  const uint64_t now = SystemClock().MonotonicNs();
  while (!delayed_tasks_.empty() && delayed_tasks_.begin()->first <= now) {
    out.push_back(std::move(delayed_tasks_.begin()->second));
    delayed_tasks_.erase(delayed_tasks_.begin());
  }
  if (delayed_tasks_.empty()) return -1;
  const uint64_t wait_ns = delayed_tasks_.begin()->first - now;
  // Rounds up: epoll counts in ms, and a timeout of 0 would spin until the task is due. Sleeping at
  // most a minute keeps the value in an int and costs nothing.
  return static_cast<int>(std::min<uint64_t>(wait_ns / 1'000'000 + 1, 60'000));
}

void EventLoop::RunReadyWatches(int timeout_ms) {
  epoll_event events[64];
  const int n = epoll_wait(epoll_fd_, events, 64, timeout_ms);
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_fd_) {
      uint64_t count;
      [[maybe_unused]] const ssize_t r = read(wake_fd_, &count, sizeof(count));
      continue;
    }
    // A task may remove any watch, its own included: the watch is looked up again, and held while
    // it runs.
    const auto it = watches_.find(fd);
    if (it == watches_.end()) continue;
    const std::shared_ptr<Task> task = it->second;
    (*task)();
  }
}

}  // namespace neurontrace
