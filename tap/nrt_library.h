// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// The Neuron Runtime's C functions that the tap calls, as a table: looked up at run time, each of
// them optional. The table is a seam: unit tests fill it with functions of a fake runtime. The tap
// has declarations of its own, as it must build without the runtime's headers and run with any
// version of it.
namespace neurontrace::tap {

using NrtStatus = int;
// Values of NRT_STATUS in the runtime's nrt/nrt_status.h that the tap tells apart.
inline constexpr NrtStatus kNrtSuccess = 0;
inline constexpr NrtStatus kNrtFailure = 1;
inline constexpr NrtStatus kNrtResource = 4;
inline constexpr NrtStatus kNrtHostMemory = 11;
inline constexpr NrtStatus kNrtUninitialized = 13;
inline constexpr NrtStatus kNrtClosed = 14;
inline constexpr NrtStatus kNrtQueueEmpty = 15;

// nrt_version_t of the runtime.
struct NrtVersion {
  uint64_t major;
  uint64_t minor;
  uint64_t patch;
  uint64_t maintenance;
  char detail[128];
  char git_hash[64];
};
static_assert(sizeof(NrtVersion) == 224);

// nrt_instance_info_t of the runtime.
struct NrtInstanceInfo {
  uint32_t family;
  uint32_t size;
  char arch_name[16];
  char device_revision[8];
};
static_assert(sizeof(NrtInstanceInfo) == 32);

struct NrtTraceConfig;   // nrt_sys_trace_config_t
struct NrtFetchOptions;  // nrt_sys_trace_fetch_options_t

// The table. Its functions are called by the tap's thread alone, between RuntimeGate::Enter and
// Leave.
struct NrtLibrary {
  // What the facts area shows about the runtime.
  NrtStatus (*get_version)(NrtVersion*, size_t) = nullptr;
  NrtStatus (*get_instance_info)(NrtInstanceInfo*, size_t) = nullptr;
  NrtStatus (*get_total_vnc_count)(uint32_t*) = nullptr;
  NrtStatus (*get_visible_vnc_count)(uint32_t*) = nullptr;

  // The trace API (nrt_sys_trace_*). Without one of the functions that CanTrace names nothing can
  // be captured; without another the tap does without what that one offers.
  NrtStatus (*config_allocate)(NrtTraceConfig**) = nullptr;
  void (*config_free)(NrtTraceConfig*) = nullptr;
  void (*config_set_max_events_per_nc)(NrtTraceConfig*, uint64_t) = nullptr;
  void (*config_set_enabled_for_nc)(NrtTraceConfig*, uint32_t, bool) = nullptr;
  NrtStatus (*config_set_enabled_for_event_type)(NrtTraceConfig*, const char*, bool) = nullptr;
  NrtStatus (*get_event_types)(const char***, size_t*) = nullptr;
  void (*free_event_types)(const char**, size_t) = nullptr;
  NrtStatus (*trace_start)(NrtTraceConfig*) = nullptr;
  NrtStatus (*trace_stop)() = nullptr;
  NrtStatus (*fetch_options_allocate)(NrtFetchOptions**) = nullptr;
  void (*fetch_options_free)(NrtFetchOptions*) = nullptr;
  void (*fetch_options_set_max_events_per_nc)(NrtFetchOptions*, uint64_t) = nullptr;
  void (*fetch_options_set_nc_idx)(NrtFetchOptions*, uint64_t) = nullptr;
  NrtStatus (*fetch_events)(char**, size_t*, const NrtFetchOptions*) = nullptr;
  void (*buffer_free)(char*) = nullptr;

  // Returns whether a trace can be started, fetched and stopped.
  bool CanTrace() const;
  // Returns whether one core can be fetched alone, with a limited number of events at a time.
  bool CanFetchOneCore() const;
};

// Frees the result of get_event_types.
void FreeEventTypes(const NrtLibrary& library, const char** types, size_t count);

// Returns the address of `name` in the runtime that this process has loaded, or null. Never loads a
// runtime: searches behind this library in the search order, then in a loaded libnrt.so.1. Takes
// the loader's lock: called by application threads within a call of theirs, never by the tap's
// thread, which could deadlock with a thread that waits for it inside dlopen.
void* FindNrtSymbol(const char* name);

// Fills the table with FindNrtSymbol.
void LoadNrtLibrary(NrtLibrary* library);

}  // namespace neurontrace::tap
