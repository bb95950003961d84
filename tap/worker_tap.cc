// SPDX-License-Identifier: Apache-2.0
#include "tap/worker_tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <new>

#include "tap/detached_thread.h"
#include "tap/pthread_lock.h"

namespace neurontrace::tap {

namespace {

constinit WorkerTap process_tap;

// Uninitialised memory: a process without a tap's thread never touches it, and one with a thread
// only the parts that it uses.
alignas(Tap) unsigned char tap_memory[sizeof(Tap)];

// Serialises OnInitialised: several threads of an application may call nrt_init at once.
pthread_mutex_t initialised_mutex = PTHREAD_MUTEX_INITIALIZER;

// Returns whether a variable of the runtime, such as NEURON_RT_INSPECT_ENABLE, is switched on.
bool IsSwitchedOn(const char* value) {
  if (value == nullptr || value[0] == '\0') return false;
  return strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0 &&
         strcasecmp(value, "off") != 0 && strcasecmp(value, "no") != 0;
}

// atexit and pthread_atfork take functions without an argument.
void HandleExit() { process_tap.OnExit(); }
void HandleForkedChild() { process_tap.OnForkedChild(); }

}  // namespace

WorkerTap& ProcessTap() { return process_tap; }

bool WorkerTap::OnInitialised(bool vouched) {
  const PthreadLock lock(&initialised_mutex);
  if (!library_loaded_) {
    // Here and not on the tap's thread: the loader's lock may be held by a thread that waits for
    // the tap.
    LoadNrtLibrary(&library_);
    library_loaded_ = true;
  }
  if (vouched && library_.get_version == nullptr && !library_.CanTrace()) {
    // The runtime may be loaded later.
    library_loaded_ = false;
    return false;
  }
  worker_facts_.CaptureEnvironment(environ);
  gate_.SetInitialised(vouched, IsSwitchedOn(getenv("NEURON_RT_INSPECT_ENABLE")));
  if (gate_.ClaimThread()) StartThread();
  RegisterExitHandler();
  return true;
}

// A runtime that calls its own exported functions on the tap's thread would wait for itself.
void WorkerTap::Before(RuntimeGate::Claim claim) {
  if (!gate_.OnTapThread()) gate_.AcquireForApp(claim, 0);
}

void WorkerTap::After(RuntimeGate::Claim claim) {
  if (!gate_.OnTapThread()) gate_.ReleaseFromApp(claim);
}

void WorkerTap::SetProfiler(RuntimeGate::Profiler profiler, bool active) {
  if (!gate_.OnTapThread()) gate_.SetProfiler(profiler, active);
}

void WorkerTap::RecordCommunicator(int32_t core, uint32_t device_id, uint32_t device_count,
                                   const char* function) {
  worker_facts_.RecordCommunicator(core, device_id, device_count, function);
  gate_.Wake();
}

void WorkerTap::OnExit() {
  if (gate_.OnTapThread()) return;
  gate_.AcquireForApp(RuntimeGate::Claim::kExit, kExitTimeoutMs);
}

void WorkerTap::OnForkedChild() {
  // The parent's locks may be held by threads that do not exist here, so all objects are made again
  // without locking or destroying the old ones.
  const int wake_fd = gate_.wake_fd();
  if (wake_fd >= 0) close(wake_fd);
  new (&gate_) RuntimeGate();
  new (&worker_facts_) WorkerFacts();
  new (&initialised_mutex) pthread_mutex_t(PTHREAD_MUTEX_INITIALIZER);
  if (tap_ != nullptr) tap_->CloseDescriptors();
  tap_ = nullptr;
}

void* WorkerTap::ThreadMain(void* self) {
  auto* tap = static_cast<WorkerTap*>(self);
  // Visible in ps and in profilers of the application.
  prctl(PR_SET_NAME, "neurontrace");
  tap->gate_.ThreadRuns();
  tap->tap_ = new (tap_memory) Tap;
  if (tap->tap_->Open(&tap->gate_, &tap->worker_facts_, &tap->library_, &kSystemTapClock,
                      tap->socket_path_, tap->ring_bytes_)) {
    for (;;) tap->tap_->Sleep(tap->tap_->Step());
  }
  tap->gate_.ThreadEnded();
  return nullptr;
}

void WorkerTap::StartThread() {
  const char* path = getenv(kTapAgentSocketEnv);
  if (path == nullptr || path[0] == '\0') path = kTapAgentSocketDefault;
  // An address cannot hold it; an empty path is never connected to.
  if (strlen(path) >= sizeof socket_path_) path = "";
  memcpy(socket_path_, path, strlen(path) + 1);
  ring_bytes_ = RingBytesFromText(getenv("NEURONTRACE_TAP_BUFFER_BYTES"));

  gate_.ThreadStarting();
  if (!StartDetachedThread(&ThreadMain, this, kThreadStackBytes)) {
    gate_.ThreadEnded();
    return;
  }
  if (!fork_handled_) {
    fork_handled_ = true;
    pthread_atfork(nullptr, nullptr, &HandleForkedChild);
  }
}

void WorkerTap::RegisterExitHandler() {
  // Exit handlers run last in, first out: registered after nrt_init has returned, the tap's runs
  // before any that the runtime registered there, and so while the runtime still works. One for
  // each nrt_init, up to a limit.
  if (exit_handlers_ >= kExitHandlersMax) return;
  ++exit_handlers_;
  atexit(&HandleExit);
}

}  // namespace neurontrace::tap
