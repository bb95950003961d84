// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <pthread.h>

// Binds functions that glibc moved from libdl and libpthread into libc in 2.34 to the versions that
// they had before, so that a container with any glibc from 2.17 on can load the tap.
//
// The references are weak: on glibc before 2.34 a process whose program needs neither libdl nor
// libpthread has none of them, and a preloaded library must not keep it from starting. Naming the
// two as DT_NEEDED would: an image without them, as minimal ones of newer systems are, could not
// start any program. Callers check HasThreads and HasLoader.
//
// Include it in every file of the tap that calls one of these functions. It has no effect in builds
// with sanitizers, which replace some of the functions.
#if defined(NEURONTRACE_TAP_OLD_GLIBC)
#if defined(__x86_64__)
#define NEURONTRACE_OLDEST_GLIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define NEURONTRACE_OLDEST_GLIBC "GLIBC_2.17"
#else
#error "name the first version of glibc on this processor"
#endif
#define NEURONTRACE_BIND_OLDEST(name) \
  __asm__(".symver " #name ", " #name "@" NEURONTRACE_OLDEST_GLIBC)
NEURONTRACE_BIND_OLDEST(dladdr);
NEURONTRACE_BIND_OLDEST(dlclose);
NEURONTRACE_BIND_OLDEST(dlopen);
NEURONTRACE_BIND_OLDEST(dlsym);
NEURONTRACE_BIND_OLDEST(pthread_attr_setstacksize);
NEURONTRACE_BIND_OLDEST(pthread_create);
#undef NEURONTRACE_BIND_OLDEST
#undef NEURONTRACE_OLDEST_GLIBC
#pragma weak dladdr
#pragma weak dlclose
#pragma weak dlopen
#pragma weak dlsym
#pragma weak pthread_attr_setstacksize
#pragma weak pthread_create

namespace neurontrace::tap {

// Returns true if this process has libpthread.
inline bool HasThreads() {
  return &pthread_create != nullptr && &pthread_attr_setstacksize != nullptr;
}
// Returns true if this process has libdl.
inline bool HasLoader() {
  return &dlsym != nullptr && &dlopen != nullptr && &dlclose != nullptr && &dladdr != nullptr;
}

}  // namespace neurontrace::tap
#else
namespace neurontrace::tap {

inline bool HasThreads() { return true; }
inline bool HasLoader() { return true; }

}  // namespace neurontrace::tap
#endif
