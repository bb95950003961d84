// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace neurontrace::tap {

// Starts a detached thread that runs `main(argument)` with every signal blocked, so that it handles
// none of the application's. Returns false if the system refuses, or the process has no threads.
// `stack_bytes` is a wish: libraries with much thread-local storage can make it too small, and then
// the thread gets a stack of the default size.
bool StartDetachedThread(void* (*main)(void*), void* argument, size_t stack_bytes);

}  // namespace neurontrace::tap
