// SPDX-License-Identifier: Apache-2.0
// A scoped lock on a pthread mutex. The tap cannot use std::mutex: its failure path needs
// libstdc++, which the tap must not bring into a worker.
#pragma once

#include <pthread.h>

// A scoped lock on a pthread mutex. The tap cannot use std::mutex, whose failure path needs
// libstdc++: the tap must not bring that into a worker.
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
