// SPDX-License-Identifier: Apache-2.0
// The Neuron Runtime's C functions that the tap calls, as a table: found at run time, every one
// optional. The table is a seam: unit tests fill it with functions of a fake runtime.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neurontrace::tap {

using NrtStatus = int;
inline constexpr NrtStatus kNrtSuccess = 0;
inline constexpr NrtStatus kNrtFailure = 1;
inline constexpr NrtStatus kNrtResource = 4;
inline constexpr NrtStatus kNrtHostMemory = 11;
inline constexpr NrtStatus kNrtUninitialized = 13;
inline constexpr NrtStatus kNrtClosed = 14;
inline constexpr NrtStatus kNrtQueueEmpty = 15;

struct NrtVersion {
  uint64_t major;
  uint64_t minor;
  uint64_t patch;
  uint64_t maintenance;
  char detail[128];
  char git_hash[64];
};
static_assert(sizeof(NrtVersion) == 224);

struct NrtInstanceInfo {
  uint32_t family;
  uint32_t size;
  char arch_name[16];
  char device_revision[8];
};
static_assert(sizeof(NrtInstanceInfo) == 32);

struct NrtTraceConfig;   // nrt_sys_trace_config_t
struct NrtFetchOptions;  // nrt_sys_trace_fetch_options_t

struct NrtLibrary {
  NrtStatus (*get_version)(NrtVersion*, size_t) = nullptr;
  NrtStatus (*get_instance_info)(NrtInstanceInfo*, size_t) = nullptr;
  NrtStatus (*get_total_vnc_count)(uint32_t*) = nullptr;
  NrtStatus (*get_visible_vnc_count)(uint32_t*) = nullptr;

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

  // Whether a trace can be started, fetched and stopped at all.
  bool CanTrace() const;
  // Whether one core can be fetched by itself, a bounded number of events at a time.
  bool CanFetchOneCore() const;
};

// Gives back what get_event_types gave.
void FreeEventTypes(const NrtLibrary& library, const char** types, size_t count);

// The address of `name` in the runtime this process has loaded, or null. Never loads a runtime:
// looks behind this library in the search order, then in a libnrt.so.1 that is already there. Takes
// the loader's lock: for application threads inside a call of theirs, never for the tap's thread.
void* FindNrtSymbol(const char* name);

// Fills the table with FindNrtSymbol.
void LoadNrtLibrary(NrtLibrary* library);

}  // namespace neurontrace::tap
