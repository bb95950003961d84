// SPDX-License-Identifier: Apache-2.0
// The tap of one process as application threads meet it: what is to be done around the runtime
// calls they make, the creation of the tap's thread, and what fork and exit mean for it. Nothing
// here runs, and no thread exists, before the first successful nrt_init.
#pragma once

#include "tap/tap.h"

namespace neurontrace::tap {

// thread: tap: fetches the runtime's rings into the shared buffer while a capture runs, else sleeps
class WorkerTap {
 public:
  // nrt_init succeeded (or the host vouches that it did). False if there is no runtime to be found.
  bool OnInitialised(bool vouched);

  // Around nrt_close, and around calls that start or stop a profiler. Ours alone ends before them.
  // On the tap's own thread (a runtime that calls its own exported functions) they do nothing.
  void Before(RuntimeGate::Claim claim);
  void After(RuntimeGate::Claim claim);
  void SetProfiler(RuntimeGate::Profiler profiler, bool active);

  void NoteCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                        const char* function);

  // exit(): a last drain if nrt_close was not called, within kExitTimeoutMs.
  void OnExit();
  // In a forked child: as if nothing had ever been loaded.
  void OnForkedChild();

 private:
  static constexpr uint32_t kExitTimeoutMs = 3000;
  static constexpr size_t kThreadStackBytes = 512 * 1024;  // the runtime's fetch runs on it
  static constexpr uint32_t kExitHandlersMax = 8;

  static void* ThreadMain(void* self);
  void StartThread();
  void RegisterExitHandler();

  RuntimeGate gate_;
  WorkerFacts worker_facts_;
  NrtLibrary library_;
  bool library_loaded_ = false;
  bool fork_handled_ = false;
  uint32_t exit_handlers_ = 0;
  uint64_t ring_bytes_ = 0;
  char socket_path_[128] = {};
  Tap* tap_ = nullptr;  // made by the tap's thread, which alone uses it
};

// The one tap of this process: interposed C functions have nothing else to hang it on.
WorkerTap& ProcessTap();

}  // namespace neurontrace::tap
