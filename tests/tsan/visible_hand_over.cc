// SPDX-License-Identifier: Apache-2.0
// Linked into every test of the tsan preset. Debian's Abseil and gRPC are not built with
// ThreadSanitizer, and absl::Mutex sleeps on a futex of its own, so the sanitizer would take every
// hand-over inside gRPC for a race. The functions here precede those of the libraries, call
// them, and tell the sanitizer that a thread released and acquired what it shares.
//
// All absl mutexes count as one lock, and gRPC's memory functions take it too, because gRPC hands
// much over with atomics alone. So do the beginning of a batch of a call and the wait for
// completions, between which gRPC carries an operation from one thread to another. That costs
// sight: of a race of ours between two threads that both call gRPC all the time, one run in three
// tells. A race with no gRPC call between its two sides is always in sight, so logic is tested
// without gRPC. With a plain build of these libraries a test of a hundred calls gives hundreds of
// false reports; with this one and tools/tsan.supp none in four hundred runs.
//
// The mangled names are those of absl::debian3 (Abseil 20220623). With another version nothing
// breaks: these functions are not called, and gRPC's hand-overs are reported again.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstddef>
#include <cstdint>

namespace {

char g_one_lock;  // only its address is used

void Acquired() { __tsan_acquire(&g_one_lock); }
void WillRelease() { __tsan_release(&g_one_lock); }
void HandOver() {
  Acquired();
  WillRelease();
}

template <typename Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// absl::Duration and absl::Time travel in registers like this.
struct Instant {
  int64_t high;
  uint32_t low;
};

using Lock = void(void*);
using TryLock = bool(void*);
using Wait = void(void*, void*);
using TimedWait = bool(void*, void*, Instant);

constexpr char kLock[] = "_ZN4absl7debian35Mutex4LockEv";
constexpr char kUnlock[] = "_ZN4absl7debian35Mutex6UnlockEv";
constexpr char kTryLock[] = "_ZN4absl7debian35Mutex7TryLockEv";
constexpr char kReaderLock[] = "_ZN4absl7debian35Mutex10ReaderLockEv";
constexpr char kReaderUnlock[] = "_ZN4absl7debian35Mutex12ReaderUnlockEv";
constexpr char kWait[] = "_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE";
constexpr char kWaitWithTimeout[] =
    "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE";
constexpr char kWaitWithDeadline[] =
    "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE";

}  // namespace

extern "C" {

void VisibleLock(void* mutex) asm("_ZN4absl7debian35Mutex4LockEv");
void VisibleUnlock(void* mutex) asm("_ZN4absl7debian35Mutex6UnlockEv");
bool VisibleTryLock(void* mutex) asm("_ZN4absl7debian35Mutex7TryLockEv");
void VisibleReaderLock(void* mutex) asm("_ZN4absl7debian35Mutex10ReaderLockEv");
void VisibleReaderUnlock(void* mutex) asm("_ZN4absl7debian35Mutex12ReaderUnlockEv");
void VisibleWait(void* condition, void* mutex) asm("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
bool VisibleWaitWithTimeout(void* condition, void* mutex, Instant timeout) asm(
    "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
bool VisibleWaitWithDeadline(void* condition, void* mutex, Instant deadline) asm(
    "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");

void VisibleLock(void* mutex) {
  static auto* const real = Real<Lock>(kLock);
  real(mutex);
  Acquired();
}

void VisibleUnlock(void* mutex) {
  static auto* const real = Real<Lock>(kUnlock);
  WillRelease();
  real(mutex);
}

bool VisibleTryLock(void* mutex) {
  static auto* const real = Real<TryLock>(kTryLock);
  const bool locked = real(mutex);
  if (locked) Acquired();
  return locked;
}

void VisibleReaderLock(void* mutex) {
  static auto* const real = Real<Lock>(kReaderLock);
  real(mutex);
  Acquired();
}

void VisibleReaderUnlock(void* mutex) {
  static auto* const real = Real<Lock>(kReaderUnlock);
  WillRelease();
  real(mutex);
}

void VisibleWait(void* condition, void* mutex) {
  static auto* const real = Real<Wait>(kWait);
  WillRelease();
  real(condition, mutex);
  Acquired();
}

bool VisibleWaitWithTimeout(void* condition, void* mutex, Instant timeout) {
  static auto* const real = Real<TimedWait>(kWaitWithTimeout);
  WillRelease();
  const bool timed_out = real(condition, mutex, timeout);
  Acquired();
  return timed_out;
}

bool VisibleWaitWithDeadline(void* condition, void* mutex, Instant deadline) {
  static auto* const real = Real<TimedWait>(kWaitWithDeadline);
  WillRelease();
  const bool timed_out = real(condition, mutex, deadline);
  Acquired();
  return timed_out;
}

void* gpr_malloc(size_t size) {
  static auto* const real = Real<void*(size_t)>("gpr_malloc");
  HandOver();
  return real(size);
}

void gpr_free(void* memory) {
  static auto* const real = Real<void(void*)>("gpr_free");
  HandOver();
  real(memory);
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* operations, size_t count,
                                      void* tag, void* reserved) {
  static auto* const real = Real<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  HandOver();
  return real(call, operations, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const real =
      Real<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  WillRelease();
  const grpc_event event = real(queue, deadline, reserved);
  Acquired();
  return event;
}

}  // extern "C"
