// SPDX-License-Identifier: Apache-2.0
// Decides at each moment who may call the runtime's trace API: the tap's thread or the application.
//
// The tap's thread enters before it calls and leaves after, and may enter only between a successful
// nrt_init and nrt_close, while no other profiler works. An application thread about to call
// nrt_close, or to start or stop a profiler, first takes the runtime back: it waits until the tap's
// thread has drained and stopped its own trace, which is bounded work, and is passed on then.
//
// This is the only lock that application threads and the tap share; it is never held over a call
// into the runtime. Any thread may call, but Enter, EnterToRelease, Leave and Observe: the tap's
// alone.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "tap/buffer_format.h"

namespace neurontrace::tap {

class RuntimeGate {
 public:
  enum class Claim : uint8_t { kYield, kClose, kExit };
  enum class Profiler : uint8_t { kSystemTrace = 1, kInspect = 2 };

  struct View {
    bool initialised;
    bool vouched;  // by the host's word, not by a call of nrt_init that we saw
    bool exiting;
    bool claimed;  // an application thread waits for the runtime
    Claim claim;
    uint8_t profilers;  // of the application, a set of Profiler
    uint32_t inits;     // successful ones so far
    uint32_t closes;
  };

  // ---- application threads ----
  // The runtime is initialised. `inspects`: it started its own capture inside nrt_init.
  void SetInitialised(bool vouched, bool inspects);

  // Takes the runtime back for a call of the application. Returns false, without waiting any
  // longer, when `timeout_ms` (0: none) passed first.
  bool TakeBack(Claim claim, uint32_t timeout_ms);
  // After the call. kClose: the runtime is closed; kExit: for good.
  void GiveBack(Claim claim);
  void SetProfiler(Profiler profiler, bool active);

  // Something else changed that the tap's thread should look at.
  void Wake();

  // ---- thread life ----
  // Claims the right to create the tap's thread: true for exactly one caller, who must then call
  // ThreadStarting. Makes the descriptor that Wake writes to.
  bool ClaimThread();
  void ThreadStarting();
  void ThreadRuns();  // on the tap's thread, first thing
  void ThreadEnded();
  bool OnTapThread() const;

  // ---- the tap's thread ----
  View Observe();
  bool Enter();           // false: the runtime may not be called now
  bool EnterForFacts();   // for calls that do not touch the capture: whatever profilers do
  bool EnterToRelease();  // to drain and stop our own trace; false: it is too late for that
  void Leave(bool owns_trace);
  void SetRuntimeGone();  // it said itself that it is closed
  void AcknowledgeExit();

  // Readable after a Wake, until ClearWake.
  int wake_fd() const { return wake_fd_.load(std::memory_order_acquire); }
  void ClearWake();

  // Not 0 while an application thread waits: long work of the tap looks at it between calls.
  const std::atomic<uint32_t>& waiting() const { return waiting_; }

 private:
  bool TapHolds() const { return thread_alive_ && (inside_ || owns_trace_); }

  std::atomic<uint32_t> waiting_{0};  // threads between TakeBack and GiveBack
  std::atomic<int> wake_fd_{-1};
  std::atomic<bool> thread_known_{false};
  pthread_t thread_ = {};

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  // Under mutex_:
  bool thread_claimed_ = false;
  bool thread_alive_ = false;
  bool initialised_ = false;
  bool vouched_ = false;
  bool exiting_ = false;
  bool exit_acknowledged_ = false;
  bool inside_ = false;      // the tap's thread is in a call
  bool owns_trace_ = false;  // a trace that the tap started runs
  Claim claim_ = Claim::kYield;
  uint8_t profilers_ = 0;
  uint32_t inits_ = 0;
  uint32_t closes_ = 0;
};

}  // namespace neurontrace::tap
