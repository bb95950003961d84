// SPDX-License-Identifier: Apache-2.0
// The functions of libnrt.so.1 that the tap is in front of, and two more for a host that reaches
// the runtime by dlopen and dlsym. Each interposed function returns the runtime's result and leaves
// errno as the runtime left it. Without a runtime they fail with kNrtFailure; nrt_close does
// nothing. They run on the application's threads: any may be called on several threads at once.
#include <errno.h>

#include "tap/worker_tap.h"

#define NEURONTRACE_EXPORT extern "C" __attribute__((visibility("default")))

namespace neurontrace::tap {

namespace {

using Claim = RuntimeGate::Claim;
using Profiler = RuntimeGate::Profiler;

// The runtime's own function of this name. It is looked up once and kept: looking it up in every
// call would take the loader's lock each time. constinit, as calls may come before constructors of
// this library run.
class RealFunction {
 public:
  constexpr explicit RealFunction(const char* name) : name_(name) {}

  template <typename Function>
  Function* As() {
    void* address = address_.load(std::memory_order_acquire);
    if (address == nullptr) {
      const int saved = errno;
      address = FindNrtSymbol(name_);
      errno = saved;
      address_.store(address, std::memory_order_release);
    }
    return reinterpret_cast<Function*>(address);
  }

 private:
  const char* name_;
  std::atomic<void*> address_{nullptr};
};

constinit RealFunction real_init("nrt_init");
constinit RealFunction real_close("nrt_close");
constinit RealFunction real_build_global_comm("nrt_build_global_comm");
constinit RealFunction real_load_collectives("nrt_load_collectives");
constinit RealFunction real_cc_global_comm_init("nrt_cc_global_comm_init");
constinit RealFunction real_trace_start("nrt_sys_trace_start");
constinit RealFunction real_trace_stop("nrt_sys_trace_stop");
constinit RealFunction real_inspect_begin("nrt_inspect_begin");
constinit RealFunction real_inspect_begin_with_options("nrt_inspect_begin_with_options");
constinit RealFunction real_inspect_stop("nrt_inspect_stop");

// Restores errno: the application may check it after its call.
class KeptErrno {
 public:
  KeptErrno() : value_(errno) {}
  ~KeptErrno() { errno = value_; }

 private:
  int value_;
};

// Calls `real` while the tap has given the runtime back, and records which profiler it starts or
// ends. The runtime has a single capture, so the tap's own trace must be stopped first.
template <typename Function, typename... Arguments>
NrtStatus CallProfiler(RealFunction* function, Profiler profiler, bool starts,
                       Arguments... arguments) {
  auto* real = function->As<Function>();
  if (real == nullptr) return kNrtFailure;
  WorkerTap& tap = ProcessTap();
  {
    const KeptErrno kept;
    tap.Before(Claim::kYield);
  }
  const NrtStatus status = real(arguments...);
  const KeptErrno kept;
  // A stop that reports an error may still have ended the capture: the next start shows it.
  if (!starts || status == kNrtSuccess) tap.SetProfiler(profiler, starts);
  tap.After(Claim::kYield);
  return status;
}

// Records the arguments of a successful call: they are the best evidence of a core's rank
// (docs/user/ranks.md).
template <typename Function, typename... Arguments>
NrtStatus CallCommunicator(RealFunction* function, const char* name, int32_t core,
                           uint32_t device_id, uint32_t device_count, Arguments... arguments) {
  auto* real = function->As<Function>();
  if (real == nullptr) return kNrtFailure;
  const NrtStatus status = real(arguments...);
  const KeptErrno kept;
  if (status == kNrtSuccess) {
    ProcessTap().RecordCommunicator(core, device_id, device_count, name);
  }
  return status;
}

}  // namespace

NEURONTRACE_EXPORT int nrt_init(int framework, const char* framework_version,
                                const char* fal_version) {
  auto* real = real_init.As<int(int, const char*, const char*)>();
  if (real == nullptr) return kNrtFailure;
  const int status = real(framework, framework_version, fal_version);
  const KeptErrno kept;
  // Only after the runtime's own initialisation, as the tap calls the runtime from then on.
  if (status == kNrtSuccess) ProcessTap().OnInitialised(false);
  return status;
}

NEURONTRACE_EXPORT void nrt_close() {
  auto* real = real_close.As<void()>();
  if (real == nullptr) return;
  {
    const KeptErrno kept;
    // Waits until the tap has drained and stopped its trace, as the runtime's rings are gone after
    // the call.
    ProcessTap().Before(Claim::kClose);
  }
  real();
  const KeptErrno kept;
  ProcessTap().After(Claim::kClose);
}

NEURONTRACE_EXPORT int nrt_build_global_comm(int32_t vnc, uint32_t g_device_id,
                                             uint32_t g_device_count) {
  return CallCommunicator<int(int32_t, uint32_t, uint32_t)>(
      &real_build_global_comm, "nrt_build_global_comm", vnc, g_device_id, g_device_count, vnc,
      g_device_id, g_device_count);
}

NEURONTRACE_EXPORT int nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id,
                                               uint32_t g_device_count) {
  return CallCommunicator<int(uint32_t, uint32_t, uint32_t)>(
      &real_cc_global_comm_init, "nrt_cc_global_comm_init", static_cast<int32_t>(vnc), g_device_id,
      g_device_count, vnc, g_device_id, g_device_count);
}

NEURONTRACE_EXPORT int nrt_load_collectives(const void* neff_bytes, size_t size, int32_t vnc,
                                            int32_t vnc_count, uint32_t ctx_device_id,
                                            uint32_t ctx_device_count, void** model) {
  return CallCommunicator<int(const void*, size_t, int32_t, int32_t, uint32_t, uint32_t, void**)>(
      &real_load_collectives, "nrt_load_collectives", vnc, ctx_device_id, ctx_device_count,
      neff_bytes, size, vnc, vnc_count, ctx_device_id, ctx_device_count, model);
}

NEURONTRACE_EXPORT int nrt_sys_trace_start(void* config) {
  return CallProfiler<int(void*)>(&real_trace_start, Profiler::kSystemTrace, true, config);
}

NEURONTRACE_EXPORT int nrt_sys_trace_stop() {
  return CallProfiler<int()>(&real_trace_stop, Profiler::kSystemTrace, false);
}

NEURONTRACE_EXPORT int nrt_inspect_begin() {
  return CallProfiler<int()>(&real_inspect_begin, Profiler::kInspect, true);
}

NEURONTRACE_EXPORT int nrt_inspect_begin_with_options(void* options) {
  return CallProfiler<int(void*)>(&real_inspect_begin_with_options, Profiler::kInspect, true,
                                  options);
}

NEURONTRACE_EXPORT int nrt_inspect_stop() {
  return CallProfiler<int()>(&real_inspect_stop, Profiler::kInspect, false);
}

// `neurontrace doctor` reads this symbol from the file.
NEURONTRACE_EXPORT const char neurontrace_tap_version[];
const char neurontrace_tap_version[] = NEURONTRACE_VERSION;

// Reports that nrt_init has succeeded, for a host whose own calls the tap cannot see, because it
// got them by dlsym from a handle of libnrt.so.1 (Python's ctypes) or loaded the tap after the
// runtime. Returns 0 if the tap found the runtime and serves it from now on, else 1.
NEURONTRACE_EXPORT int neurontrace_tap_runtime_initialized() {
  return ProcessTap().OnInitialised(true) ? 0 : 1;
}

// And: "nrt_close, or a profiler of mine, comes next". When it returns, the tap has drained and
// stopped its trace and will not call the runtime until neurontrace_tap_runtime_initialized is
// called again.
NEURONTRACE_EXPORT void neurontrace_tap_runtime_closing() {
  ProcessTap().Before(Claim::kClose);
  ProcessTap().After(Claim::kClose);
}

}  // namespace neurontrace::tap
