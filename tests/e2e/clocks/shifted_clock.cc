// SPDX-License-Identifier: Apache-2.0
// Preloaded into the processes of a simulated instance: gives them clocks of their own.
//
//   NEURONTRACE_TRUE_MINUS_RAW  true time is this machine's CLOCK_MONOTONIC_RAW and so many ns,
//                               which whoever starts all these processes reads once: it is smooth,
//                               whatever this machine's own time service does meanwhile
//   NEURONTRACE_HOST_CLOCK      how the instance's clocks differ from that (host_clock.h); none:
//   not
//
// Shifted are the readings of REALTIME, MONOTONIC, BOOTTIME and MONOTONIC_RAW; the receive stamps
// of packets, which the kernel makes of its own REALTIME; adjtimex(2)'s report of how REALTIME is
// steered; a timer that is to report when REALTIME is set; and deadlines that threads wait for.
// True time itself is there as neurontrace_true_ns(). Real seconds pass as ever: timers, timeouts
// and sleeps of a given length are not touched, nor what other processes and the kernel's files
// show.
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "tests/fake_nrt/host_clock.h"

#ifndef TFD_TIMER_CANCEL_ON_SET
#define TFD_TIMER_CANCEL_ON_SET (1 << 1)
#endif

namespace neurontrace {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kEpochLeastNs = 1'000'000'000 * kSecondNs;  // MONOTONIC never gets so far

// The function of that name that this library precedes. Of those that glibc has in two
// versions the newer, as dlsym(3) may give the older.
template <typename Function>
Function* Next(const char* name) {
  for (const char* version : {"GLIBC_2.3.2", "GLIBC_2.17"}) {
    if (strncmp(name, "pthread_cond", 12) != 0) break;
    if (void* const found = dlvsym(RTLD_NEXT, name, version)) {
      return reinterpret_cast<Function*>(found);
    }
  }
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int64_t ToNs(const timespec& time) { return time.tv_sec * kSecondNs + time.tv_nsec; }

timespec ToTimespec(int64_t ns) {
  return {.tv_sec = ns / kSecondNs, .tv_nsec = static_cast<long>(ns % kSecondNs)};
}

// This machine's own clock.
int64_t ReadMachine(clockid_t id) {
  static auto* const read = Next<int(clockid_t, timespec*)>("clock_gettime");
  timespec now = {};
  read(id, &now);
  return ToNs(now);
}

class Clocks {
 public:
  Clocks() {
    const int64_t raw_ns = ReadMachine(CLOCK_MONOTONIC_RAW);
    const char* const given = getenv("NEURONTRACE_TRUE_MINUS_RAW");
    true_minus_raw_ns_ =
        given != nullptr ? strtoll(given, nullptr, 10) : ReadMachine(CLOCK_REALTIME) - raw_ns;
    monotonic_minus_raw_ns_ = ReadMachine(CLOCK_MONOTONIC) - raw_ns;
    boottime_minus_raw_ns_ = ReadMachine(CLOCK_BOOTTIME) - raw_ns;
    const char* const text = getenv("NEURONTRACE_HOST_CLOCK");
    const auto clock = HostClock::Parse(text != nullptr ? text : "");
    if (!clock) {
      fprintf(stderr, "shifted_clock: NEURONTRACE_HOST_CLOCK=%s\n", text);
      abort();
    }
    host_ = *clock;
  }

  int64_t TrueNs() const { return ReadMachine(CLOCK_MONOTONIC_RAW) + true_minus_raw_ns_; }
  const HostClock& host() const { return host_; }

  bool IsShifted(clockid_t id) const {
    return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE || id == CLOCK_MONOTONIC ||
           id == CLOCK_MONOTONIC_COARSE || id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;
  }
  int64_t Read(clockid_t id) const {
    const int64_t true_ns = TrueNs();
    const int64_t raw_ns = true_ns - true_minus_raw_ns_;
    if (id == CLOCK_MONOTONIC_RAW) return raw_ns + host_.raw_offset_ns + host_.RawGainedNs(true_ns);
    if (id == CLOCK_BOOTTIME) return raw_ns + boottime_minus_raw_ns_ + host_.GainedNs(true_ns);
    if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE) {
      return raw_ns + monotonic_minus_raw_ns_ + host_.GainedNs(true_ns);
    }
    return host_.Stamp(true_ns);
  }

  // What this instance's REALTIME showed when the machine's did `machine_ns`, a moment ago. Late by
  // what the readings here take, never early.
  int64_t RealtimeWhen(int64_t machine_ns) const {
    const int64_t machine_now_ns = ReadMachine(CLOCK_REALTIME);
    return host_.Stamp(TrueNs() - (machine_now_ns - machine_ns));
  }
  // The machine's REALTIME at a moment of true time.
  int64_t MachineRealtimeAt(int64_t true_ns) const {
    return ReadMachine(CLOCK_REALTIME) + (true_ns - TrueNs());
  }
  // A deadline by this instance's REALTIME or MONOTONIC, told apart by its size, by the machine's.
  timespec MachineDeadline(const timespec& deadline) const {
    const clockid_t id = ToNs(deadline) > kEpochLeastNs ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const int64_t left_ns = ToNs(deadline) - Read(id);
    return ToTimespec(std::max<int64_t>(0, ReadMachine(id) + left_ns));
  }

 private:
  int64_t true_minus_raw_ns_ = 0;
  int64_t monotonic_minus_raw_ns_ = 0;
  int64_t boottime_minus_raw_ns_ = 0;
  HostClock host_;
};

const Clocks& TheClocks() {
  static const Clocks* const clocks = new Clocks();
  return *clocks;
}

// The timer that is to report steps; a process has one.
std::atomic<int> step_timer = -1;

void ShiftStamps(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    const bool is_stamp =
        control->cmsg_type == SCM_TIMESTAMPING || control->cmsg_type == SCM_TIMESTAMPNS;
    if (control->cmsg_level != SOL_SOCKET || !is_stamp) continue;
    timespec stamp = {};  // the first of three is the kernel's
    memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
    if (stamp.tv_sec <= 0) continue;
    stamp = ToTimespec(TheClocks().RealtimeWhen(ToNs(stamp)));
    memcpy(CMSG_DATA(control), &stamp, sizeof(stamp));
  }
}

}  // namespace
}  // namespace neurontrace

using neurontrace::Next;
using neurontrace::TheClocks;

extern "C" {

int64_t neurontrace_true_ns() { return TheClocks().TrueNs(); }

int clock_gettime(clockid_t id, timespec* time) noexcept {
  if (!TheClocks().IsShifted(id)) {
    static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
    return next(id, time);
  }
  *time = neurontrace::ToTimespec(TheClocks().Read(id));
  return 0;
}

int gettimeofday(timeval* time, void*) noexcept {
  const timespec now = neurontrace::ToTimespec(TheClocks().Read(CLOCK_REALTIME));
  *time = {.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* time) noexcept {
  const time_t now = TheClocks().Read(CLOCK_REALTIME) / neurontrace::kSecondNs;
  if (time != nullptr) *time = now;
  return now;
}

int adjtimex(timex* state) noexcept {
  static auto* const next = Next<int(timex*)>("adjtimex");
  const int result = next(state);
  if (result < 0) return result;
  constexpr double kUnitsPerPpm = 65'536;
  state->tick = 10'000;
  state->freq = std::lround(TheClocks().host().ShownPpm(TheClocks().TrueNs()) * kUnitsPerPpm);
  return result;
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static auto* const next = Next<ssize_t(int, msghdr*, int)>("recvmsg");
  const ssize_t result = next(socket, message, flags);
  if (result >= 0) neurontrace::ShiftStamps(*message);
  return result;
}

int recvmmsg(int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout) {
  static auto* const next = Next<int(int, mmsghdr*, unsigned, int, timespec*)>("recvmmsg");
  const int result = next(socket, messages, count, flags, timeout);
  for (int i = 0; i < result; ++i) neurontrace::ShiftStamps(messages[i].msg_hdr);
  return result;
}

// A timer that the kernel cancels when REALTIME is set becomes one that fires when it is set here.
int timerfd_settime(int fd, int flags, const itimerspec* value, itimerspec* old) noexcept {
  static auto* const next = Next<int(int, int, const itimerspec*, itimerspec*)>("timerfd_settime");
  if ((flags & TFD_TIMER_CANCEL_ON_SET) == 0) return next(fd, flags, value, old);
  neurontrace::step_timer = fd;
  itimerspec then = {};
  then.it_value.tv_sec = std::numeric_limits<time_t>::max();
  if (const auto step_ns = TheClocks().host().NextStepAfter(TheClocks().TrueNs())) {
    then.it_value = neurontrace::ToTimespec(TheClocks().MachineRealtimeAt(*step_ns));
  }
  return next(fd, TFD_TIMER_ABSTIME, &then, old);
}

ssize_t read(int fd, void* buffer, size_t bytes) {
  static auto* const next = Next<ssize_t(int, void*, size_t)>("read");
  const ssize_t result = next(fd, buffer, bytes);
  if (result < 0 || fd != neurontrace::step_timer) return result;
  errno = ECANCELED;
  return -1;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* deadline) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const timespec shifted = TheClocks().MachineDeadline(*deadline);
  return next(condition, mutex, &shifted);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t id,
                           const timespec* deadline) {
  static auto* const next =
      Next<int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*)>(
          "pthread_cond_clockwait");
  const timespec shifted = TheClocks().MachineDeadline(*deadline);
  return next(condition, mutex, id, &shifted);
}

// Abseil waits this way, and gRPC with it.
long syscall(long number, ...) noexcept {
  static auto* const next = Next<long(long, ...)>("syscall");
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec shifted;
  const bool is_wait = number == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  if (is_wait && arguments[3] != 0) {
    shifted = TheClocks().MachineDeadline(*reinterpret_cast<const timespec*>(arguments[3]));
    arguments[3] = reinterpret_cast<long>(&shifted);
  }
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

}  // extern "C"
