// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "tap/buffer_format.h"

// Decides at each moment who may call the runtime's trace API: the tap's thread or the application.
//
// The tap's thread enters before its calls and leaves after them. It may enter only between a
// successful nrt_init and nrt_close, while no other profiler is active. An application thread that
// is about to call nrt_close, or to start or stop a profiler, first takes the runtime back: it
// waits until the tap's thread has drained and stopped its own trace, which takes limited time.
//
// Its lock is never held during a call into the runtime. Any thread may call the methods, except
// for those marked as the tap's thread's own.
namespace neurontrace::tap {

class RuntimeGate {
 public:
  // Why an application thread takes the runtime, weakest first.
  enum class Claim : uint8_t { kYield, kClose, kExit };
  // Profilers of the application, as bits of a set.
  enum class Profiler : uint8_t { kSystemTrace = 1, kInspect = 2 };

  // A consistent copy of the state.
  struct View {
    bool initialised;
    bool vouched;  // the host declared nrt_init, which the tap has not seen
    bool exiting;
    bool claimed;  // an application thread waits for the runtime
    Claim claim;
    uint8_t profilers;  // of the application, a set of Profiler
    uint32_t inits;     // successful ones so far
    uint32_t closes;
  };

  // Records a successful nrt_init. `inspects`: the runtime started a capture of its own inside
  // nrt_init.
  void SetInitialised(bool vouched, bool inspects);

  // Takes the runtime back for a call of the application. Waits until the tap's trace has stopped,
  // at most `timeout_ms` (0: no limit). Returns false after the timeout. ReleaseFromApp must follow
  // in both cases, except after kExit.
  bool AcquireForApp(Claim claim, uint32_t timeout_ms);
  // Called after the application's call. kClose: the runtime is closed; kExit: for good.
  void ReleaseFromApp(Claim claim);
  // Records that a profiler of the application has started or ended.
  void SetProfiler(Profiler profiler, bool active);

  // Wakes the tap's thread after any other change.
  void Wake();

  // Claims the right to create the tap's thread: returns true to exactly one caller, who must then
  // call ThreadStarting. Makes the descriptor that Wake writes to; returns false also if the system
  // refuses it.
  bool ClaimThread();
  // Called before the thread is created, so that an exit meanwhile waits for it.
  void ThreadStarting();
  // The tap's thread calls it first.
  void ThreadRuns();
  // Called by the thread, or by its creator if creating it failed. Releases all waiting application
  // threads.
  void ThreadEnded();
  // Returns whether the caller is the tap's thread. A runtime that calls its own exported functions
  // there must not wait for itself.
  bool OnTapThread() const;

  // ---- the tap's thread ----
  // Returns the state at this moment. Application threads may change it right after.
  View Observe();
  // Begins calls of the trace API. Returns false, and the runtime must not be called, if it is not
  // initialised, the process exits, a profiler is active or an application thread waits.
  bool Enter();
  // Enters for a call that does not concern captures: allowed while a profiler is active.
  bool EnterForFacts();
  // Begins the last drain and the stop of the tap's own trace; allowed while application threads
  // wait for exactly that. Returns false if the runtime is closed, or the tap owns no trace.
  bool EnterToRelease();
  // Ends an Enter. `owns_trace`: a trace of the tap is running.
  void Leave(bool owns_trace);
  // Records that the runtime itself has reported that it is closed.
  void SetRuntimeClosed();
  // Confirms that the last record of an exiting process has been written.
  void AcknowledgeExit();

  // Readable after a Wake, until ClearWake.
  int wake_fd() const { return wake_fd_.load(std::memory_order_acquire); }
  void ClearWake();

  // Returns a counter that is not 0 while an application thread waits. The tap checks it between
  // the calls of long work.
  const std::atomic<uint32_t>& waiting() const { return waiting_; }

 private:
  // Returns whether application threads have to wait for the tap. Requires mutex_.
  bool TapHolds() const { return thread_running_ && (inside_ || owns_trace_); }

  std::atomic<uint32_t> waiting_{0};  // threads between AcquireForApp and ReleaseFromApp
  std::atomic<int> wake_fd_{-1};
  // Whether thread_ is set. It is written once and never changes.
  std::atomic<bool> thread_known_{false};
  pthread_t thread_ = {};

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed_ = PTHREAD_COND_INITIALIZER;
  // Under mutex_:
  bool thread_claimed_ = false;  // ClaimThread has returned true
  bool thread_running_ = false;  // or about to be created
  bool initialised_ = false;
  bool vouched_ = false;  // see View
  bool exiting_ = false;
  bool exit_acknowledged_ = false;
  bool inside_ = false;          // the tap's thread is in a call
  bool owns_trace_ = false;      // a trace that the tap started runs
  Claim claim_ = Claim::kYield;  // the strongest of those that wait
  uint8_t profilers_ = 0;        // of the application, a set of Profiler
  uint32_t inits_ = 0;
  uint32_t closes_ = 0;
};

}  // namespace neurontrace::tap
