// SPDX-License-Identifier: Apache-2.0
// What application threads tell the tap about the worker's place in its job: its environment at
// nrt_init, and the communicator calls it made. Fixed memory, no allocation; a lock of its own,
// held for a copy at most. Any thread may call.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "tap/facts_writer.h"

namespace neurontrace::tap {

class WorkerFacts {
 public:
  static constexpr int32_t kAnyCore = -1;

  // Copies the variables that matter (see environment_facts.h) out of the process's environment. On
  // the thread that calls nrt_init, because reading the environment races with setenv elsewhere.
  void CaptureEnvironment(const char* const* environment);

  // A communicator call that succeeded. `function` must be a string literal.
  void NoteCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                        const char* function);

  // Grows with each change; the tap composes the facts area again when it moved.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  void AddTo(FactsWriter* writer);

 private:
  static constexpr uint32_t kCommunicatorSlots = kTapMaxCores + 1;  // the last: any core
  static constexpr uint32_t kEnvironmentBytesMax = 24 * 1024;

  struct Communicator {
    const char* function;  // null: no call seen
    uint32_t device_id;
    uint32_t device_count;
  };

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<uint64_t> version_{1};
  uint32_t environment_bytes_ = 0;
  uint32_t environment_left_out_ = 0;
  char environment_[kEnvironmentBytesMax] = {};  // "NAME=VALUE\0" one after the other
  Communicator communicators_[kCommunicatorSlots] = {};
};

}  // namespace neurontrace::tap
