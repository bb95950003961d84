// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

// A scoped lock on a pthread mutex. The tap cannot use std::mutex, whose failure path needs
// libstdc++: the tap must not bring that into a worker. Not recursive; both functions of pthread
// fail only for a mutex that is used wrongly, so their results are ignored.
namespace neurontrace::tap {

class PthreadLock {
 public:
  explicit PthreadLock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
  ~PthreadLock() { pthread_mutex_unlock(mutex_); }
  PthreadLock(const PthreadLock&) = delete;
  PthreadLock& operator=(const PthreadLock&) = delete;

 private:
  pthread_mutex_t* mutex_;
};

}  // namespace neurontrace::tap
