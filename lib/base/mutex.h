// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Annotations that clang's -Wthread-safety checks; other compilers skip them. Abseil's internal
// headers define the names without NT_.
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#if defined(__clang__)
#define NT_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define NT_THREAD_ATTRIBUTE(x)
#endif

#define NT_CAPABILITY(name) NT_THREAD_ATTRIBUTE(capability(name))
#define NT_SCOPED_CAPABILITY NT_THREAD_ATTRIBUTE(scoped_lockable)
// A field that is read and written only while the mutex is held.
#define NT_GUARDED_BY(mutex) NT_THREAD_ATTRIBUTE(guarded_by(mutex))
// A function that is called while the mutex is held, and one that is called while it is not.
#define NT_REQUIRES(...) NT_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define NT_EXCLUDES(...) NT_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// A function that locks the mutex, and one that unlocks it.
#define NT_ACQUIRE(...) NT_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define NT_RELEASE(...) NT_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
// A function that the analysis does not look into. Its comment says why it is correct.
#define NT_NO_THREAD_SAFETY_ANALYSIS NT_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace neurontrace {

// A std::mutex that clang's analysis understands. std::mutex rather than absl::Mutex, as
// ThreadSanitizer does not see into Debian's build of Abseil (decision 0039). Not recursive.
class NT_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Blocks until the mutex is free. Code uses MutexLock, which cannot forget to unlock it.
  void Lock() NT_ACQUIRE() { mutex_.lock(); }
  void Unlock() NT_RELEASE() { mutex_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mutex_;
};

// Holds a mutex until the end of its scope. Between Unlock and Lock it holds nothing.
class NT_SCOPED_CAPABILITY MutexLock {
 public:
  // `mutex` outlives this.
  explicit MutexLock(Mutex& mutex) NT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() NT_RELEASE() {
    if (is_locked_) mutex_.Unlock();
  }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  // Releases the mutex before the end of the scope. Requires that it is held.
  void Unlock() NT_RELEASE() {
    is_locked_ = false;
    mutex_.Unlock();
  }
  void Lock() NT_ACQUIRE() {
    mutex_.Lock();
    is_locked_ = true;
  }

 private:
  Mutex& mutex_;
  bool is_locked_ = true;
};

// A condition variable for a Mutex. Every wait releases the mutex while it sleeps, and holds it
// again when it returns. A condition that reads guarded fields is a lambda that names the mutex:
//   changed_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return stop_ || !queue_.empty(); });
class CondVar {
 public:
  // Returns once `condition()` is true.
  template <typename Condition>
  void Wait(Mutex& mutex, Condition condition) NT_REQUIRES(mutex) {
    // The lock is adopted and released without unlocking: the caller's MutexLock owns it.
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    changed_.wait(lock, condition);
    lock.release();
  }
  // Waits until `condition()` is true or `timeout` has passed, and returns the condition's last
  // value.
  template <typename Condition>
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout, Condition condition)
      NT_REQUIRES(mutex) {
    // See Wait.
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    const bool is_met = changed_.wait_for(lock, timeout, condition);
    lock.release();
    return is_met;
  }

  // Wake one waiting thread, or all. The mutex may be held or not.
  void NotifyOne() { changed_.notify_one(); }
  void NotifyAll() { changed_.notify_all(); }

 private:
  std::condition_variable changed_;
};

}  // namespace neurontrace
