// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "tap/buffer_format.h"
#include "tap/facts_writer.h"
#include "tap/nrt_library.h"

// The facts that an agent reads about a worker.
namespace neurontrace::tap {

// The runtime's version and limits, queried once after each nrt_init and kept past nrt_close. Used
// on the tap's thread.
struct RuntimeFacts {
  // True once Gather has asked the runtime, even if some of its calls failed.
  bool complete = false;
  bool has_version = false;
  bool has_instance = false;
  bool has_visible_cores = false;
  bool has_total_cores = false;
  uint32_t visible_cores = 0;
  uint32_t total_cores = 0;
  NrtVersion version = {};
  NrtInstanceInfo instance = {};
  uint32_t event_types_bytes = 0;
  char event_types[8192];  // event_types_bytes of it, separated by commas

  // Queries the runtime. The caller ensures that it may be called.
  void Gather(const NrtLibrary& library);
  // Adds the facts that are known.
  void AddTo(FactsWriter* writer) const;
};

// Adds this process's executable and command line from /proc. Called on the tap's thread.
void AddProcessFacts(FactsWriter* writer);

// Facts that application threads report about the worker's place in its job: its environment at
// nrt_init, and its communicator calls. Fixed memory, no allocation; a lock of its own, held for a
// copy at most. Any thread may call.
class WorkerFacts {
 public:
  // Copies the relevant variables out of the process's environment. Called on the thread that calls
  // nrt_init, as reading the environment races with setenv on other threads.
  void CaptureEnvironment(const char* const* environment);

  // Records a communicator call that succeeded. `function` must be a string literal.
  void RecordCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                          const char* function);

  // Grows with each change; the tap composes the facts area again when it has changed.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Adds the communicator calls, then the environment. Called on the tap's thread.
  void AddTo(FactsWriter* writer);

 private:
  static constexpr uint32_t kCommunicatorSlots = kTapMaxCores + 1;  // the last: any core
  static constexpr uint32_t kEnvironmentBytesMax = 24 * 1024;
  static constexpr uint64_t kEnvironmentValueBytesMax = 4096;  // a longer "NAME=VALUE" is omitted

  // The last successful communicator call for one core.
  struct Communicator {
    const char* function;  // null: no call seen
    uint32_t device_id;
    uint32_t device_count;
  };

  // Guards everything below but version_, which changes under it and is read without.
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<uint64_t> version_{1};
  uint32_t environment_bytes_ = 0;
  uint32_t environment_left_out_ = 0;
  char environment_[kEnvironmentBytesMax] = {};  // "NAME=VALUE\0" one after the other
  Communicator communicators_[kCommunicatorSlots] = {};
};

}  // namespace neurontrace::tap
