// SPDX-License-Identifier: Apache-2.0
#include "tap/detached_thread.h"

#include <pthread.h>
#include <signal.h>

#include <cerrno>

#include "tap/old_glibc.h"

namespace neurontrace::tap {

bool StartDetachedThread(void* (*main)(void*), void* argument, size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  if (HasThreads()) pthread_attr_setstacksize(&attributes, stack_bytes);
  // On Linux sigprocmask sets the mask of the calling thread alone, and glibc has always had it in
  // libc, unlike pthread_sigmask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  int error = HasThreads() ? pthread_create(&thread, &attributes, main, argument) : ENOSYS;
  if (error != 0 && HasThreads()) {
    // The second attempt takes the default size.
    pthread_attr_destroy(&attributes);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = pthread_create(&thread, &attributes, main, argument);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error == 0;
}

}  // namespace neurontrace::tap
