// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tap/tap.h"

// The tap of one process as application threads meet it: the actions around their runtime calls,
// the creation of the tap's thread, and the handling of fork and exit. No code runs here, and no
// thread exists, before the first successful nrt_init.
namespace neurontrace::tap {

// thread: tap: fetches the runtime's rings into the shared buffer while a capture runs, else sleeps
class WorkerTap {
 public:
  // Called after nrt_init has succeeded, or the host has declared so. Returns false if no runtime
  // is found.
  bool OnInitialised(bool vouched);

  // Called around nrt_close, and around calls that start or stop a profiler. Before ends the tap's
  // trace. They have no effect on the tap's own thread (a runtime may call its own exported
  // functions).
  void Before(RuntimeGate::Claim claim);
  void After(RuntimeGate::Claim claim);
  void SetProfiler(RuntimeGate::Profiler profiler, bool active);

  // Records a communicator call that succeeded, see WorkerFacts. Any thread.
  void RecordCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                          const char* function);

  // Called in exit(): makes a last drain if nrt_close was not called, within kExitTimeoutMs.
  void OnExit();
  // Called in a forked child: resets the gate, the facts and the tap, so that the next nrt_init
  // begins as the first one. The library and the registered handlers stay valid and are kept.
  void OnForkedChild();

 private:
  static constexpr uint32_t kExitTimeoutMs = 3000;
  static constexpr size_t kThreadStackBytes = 512 * 1024;  // the runtime's fetch runs on it
  // Each successful nrt_init registers one more exit handler, up to this many, as none can be
  // removed.
  static constexpr uint32_t kExitHandlersMax = 8;

  // Runs the tap's thread. Ends only if the shared buffer cannot be created.
  static void* ThreadMain(void* self);
  // Reads the tap's environment variables and creates the thread, with every signal blocked. A
  // failure leaves the worker untraced.
  void StartThread();
  void RegisterExitHandler();

  RuntimeGate gate_;
  WorkerFacts worker_facts_;
  NrtLibrary library_;
  bool library_loaded_ = false;  // library_ is filled
  bool fork_handled_ = false;    // pthread_atfork was called; children keep it
  uint32_t exit_handlers_ = 0;
  uint64_t ring_bytes_ = 0;
  char socket_path_[128] = {};
  Tap* tap_ = nullptr;  // made by the tap's thread, which alone uses it
};

// Returns the only tap of this process: interposed C functions have no object of their own to keep
// it in.
WorkerTap& ProcessTap();

}  // namespace neurontrace::tap
