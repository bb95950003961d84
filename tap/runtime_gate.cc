// SPDX-License-Identifier: Apache-2.0
// The gate is a monitor: a mutex, a condition variable on which application threads wait, and an
// eventfd that wakes the tap's thread, which itself never waits here. An application thread first
// raises waiting_, after which Enter fails and a drain in progress ends after its current fetch. It
// then waits until the tap's thread is outside of the runtime and owns no trace. The tap's next
// step sees the claim, drains and stops its trace, and leaves.
#include "tap/runtime_gate.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "tap/pthread_lock.h"

namespace neurontrace::tap {

namespace {

// Returns the time of day `timeout_ms` from now, in the form that pthread_cond_timedwait expects.
timespec Deadline(uint32_t timeout_ms) {
  timespec deadline;
  // pthread_cond_timedwait measures by CLOCK_REALTIME unless the condition variable has another
  // clock.
  clock_gettime(CLOCK_REALTIME, &deadline);
  deadline.tv_sec += timeout_ms / 1000;
  deadline.tv_nsec += static_cast<long>(timeout_ms % 1000) * 1'000'000;
  if (deadline.tv_nsec >= 1'000'000'000) {
    deadline.tv_nsec -= 1'000'000'000;
    ++deadline.tv_sec;
  }
  return deadline;
}

}  // namespace

void RuntimeGate::SetInitialised(bool vouched, bool inspects) {
  {
    const PthreadLock lock(&mutex_);
    initialised_ = true;
    vouched_ = vouched;
    ++inits_;
    if (inspects) profilers_ |= static_cast<uint8_t>(Profiler::kInspect);
  }
  Wake();
}

bool RuntimeGate::AcquireForApp(Claim claim, uint32_t timeout_ms) {
  const timespec deadline = Deadline(timeout_ms);
  const PthreadLock lock(&mutex_);
  // If several threads wait, the strongest claim decides how the trace ends: exit over close over
  // yield.
  if (waiting_.load(std::memory_order_relaxed) == 0 || claim > claim_) claim_ = claim;
  waiting_.fetch_add(1, std::memory_order_release);
  if (claim == Claim::kExit) exiting_ = true;
  Wake();
  // At exit the tap's thread also has to write its last record, so the application waits for its
  // acknowledgement.
  while (TapHolds() || (claim == Claim::kExit && thread_running_ && !exit_acknowledged_)) {
    const int error = timeout_ms == 0 ? pthread_cond_wait(&changed_, &mutex_)
                                      : pthread_cond_timedwait(&changed_, &mutex_, &deadline);
    // The claim stays: until ReleaseFromApp the tap may only release its trace, and starts no new
    // one.
    if (error == ETIMEDOUT) return false;
  }
  return true;
}

void RuntimeGate::ReleaseFromApp(Claim claim) {
  {
    const PthreadLock lock(&mutex_);
    waiting_.fetch_sub(1, std::memory_order_release);
    // A closed runtime has no profiler any more.
    if (claim != Claim::kYield) {
      if (initialised_) ++closes_;
      initialised_ = false;
      profilers_ = 0;
    }
  }
  Wake();
}

void RuntimeGate::SetProfiler(Profiler profiler, bool active) {
  const PthreadLock lock(&mutex_);
  if (active) {
    profilers_ |= static_cast<uint8_t>(profiler);
  } else {
    profilers_ &= static_cast<uint8_t>(~static_cast<uint8_t>(profiler));
  }
}

void RuntimeGate::Wake() {
  const int fd = wake_fd();
  if (fd < 0) return;
  const uint64_t one = 1;
  // Fails only if the counter is full, and then the thread is awake already.
  [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof one);
}

void RuntimeGate::ClearWake() {
  uint64_t count;
  [[maybe_unused]] const ssize_t size = read(wake_fd(), &count, sizeof count);
}

bool RuntimeGate::ClaimThread() {
  const PthreadLock lock(&mutex_);
  if (thread_claimed_) return false;
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) return false;
  wake_fd_.store(fd, std::memory_order_release);
  thread_claimed_ = true;
  return true;
}

void RuntimeGate::ThreadStarting() {
  const PthreadLock lock(&mutex_);
  thread_running_ = true;
}

void RuntimeGate::ThreadRuns() {
  // Published with release order, so that OnTapThread never compares with a half-written id.
  thread_ = pthread_self();
  thread_known_.store(true, std::memory_order_release);
}

void RuntimeGate::ThreadEnded() {
  const PthreadLock lock(&mutex_);
  thread_running_ = false;
  inside_ = false;
  owns_trace_ = false;
  pthread_cond_broadcast(&changed_);
}

bool RuntimeGate::OnTapThread() const {
  return thread_known_.load(std::memory_order_acquire) && pthread_equal(thread_, pthread_self());
}

RuntimeGate::View RuntimeGate::Observe() {
  const PthreadLock lock(&mutex_);
  View view = {};
  view.initialised = initialised_;
  view.vouched = vouched_;
  view.exiting = exiting_;
  view.claimed = waiting_.load(std::memory_order_relaxed) > 0;
  view.claim = claim_;
  view.profilers = profilers_;
  view.inits = inits_;
  view.closes = closes_;
  return view;
}

bool RuntimeGate::Enter() {
  const PthreadLock lock(&mutex_);
  // An application thread that waits has priority: a busy trace could otherwise keep it waiting.
  if (!initialised_ || exiting_ || profilers_ != 0) return false;
  if (waiting_.load(std::memory_order_relaxed) > 0) return false;
  inside_ = true;
  return true;
}

bool RuntimeGate::EnterForFacts() {
  const PthreadLock lock(&mutex_);
  if (!initialised_ || exiting_ || waiting_.load(std::memory_order_relaxed) > 0) return false;
  inside_ = true;
  return true;
}

bool RuntimeGate::EnterToRelease() {
  const PthreadLock lock(&mutex_);
  if (!initialised_ || !owns_trace_) return false;
  inside_ = true;
  return true;
}

void RuntimeGate::Leave(bool owns_trace) {
  const PthreadLock lock(&mutex_);
  inside_ = false;
  owns_trace_ = owns_trace;
  pthread_cond_broadcast(&changed_);
}

void RuntimeGate::SetRuntimeClosed() {
  const PthreadLock lock(&mutex_);
  if (initialised_) ++closes_;
  initialised_ = false;
}

void RuntimeGate::AcknowledgeExit() {
  const PthreadLock lock(&mutex_);
  exit_acknowledged_ = true;
  pthread_cond_broadcast(&changed_);
}

}  // namespace neurontrace::tap
