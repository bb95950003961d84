// SPDX-License-Identifier: Apache-2.0
#include "tap/nrt_library.h"

#include <stdlib.h>

#include "tap/old_glibc.h"

namespace neurontrace::tap {

namespace {

// Returns whether an address is in this very library, which is not a runtime: a second copy of the
// tap may be loaded.
bool IsOurs(void* address) {
  Dl_info theirs;
  Dl_info ours;
  if (dladdr(address, &theirs) == 0) return false;
  if (dladdr(reinterpret_cast<void*>(&FindNrtSymbol), &ours) == 0) return false;
  return theirs.dli_fbase == ours.dli_fbase;
}

// Sets `slot` to the runtime's function of this name, or to null if it has none.
template <typename Function>
void Resolve(Function* slot, const char* name) {
  *slot = reinterpret_cast<Function>(FindNrtSymbol(name));
}

}  // namespace

bool NrtLibrary::CanTrace() const {
  return config_allocate != nullptr && config_free != nullptr && trace_start != nullptr &&
         trace_stop != nullptr && fetch_events != nullptr && buffer_free != nullptr;
}

bool NrtLibrary::CanFetchOneCore() const {
  return get_visible_vnc_count != nullptr && fetch_options_allocate != nullptr &&
         fetch_options_free != nullptr && fetch_options_set_nc_idx != nullptr;
}

void FreeEventTypes(const NrtLibrary& library, const char** types, size_t count) {
  if (types == nullptr) return;
  // Older runtimes do not have the function.
  if (library.free_event_types != nullptr) {
    library.free_event_types(types, count);
    return;
  }
  // By the runtime's contract each string and the array may be passed to free().
  for (size_t i = 0; i < count; ++i) free(const_cast<char*>(types[i]));
  free(types);
}

void* FindNrtSymbol(const char* name) {
  if (!HasLoader()) return nullptr;
  void* address = dlsym(RTLD_NEXT, name);
  if (address != nullptr && !IsOurs(address)) return address;
  // A runtime that was loaded by dlopen, as Python extensions do, is in no search order but has a
  // handle.
  void* handle = dlopen("libnrt.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (handle == nullptr) return nullptr;
  address = dlsym(handle, name);
  // Releases only the reference that RTLD_NOLOAD took.
  dlclose(handle);
  return address != nullptr && IsOurs(address) ? nullptr : address;
}

// Functions that a runtime of another version does not have stay null.
void LoadNrtLibrary(NrtLibrary* library) {
  Resolve(&library->get_version, "nrt_get_version");
  Resolve(&library->get_instance_info, "nrt_get_instance_info");
  Resolve(&library->get_total_vnc_count, "nrt_get_total_vnc_count");
  Resolve(&library->get_visible_vnc_count, "nrt_get_visible_vnc_count");
  Resolve(&library->config_allocate, "nrt_sys_trace_config_allocate");
  Resolve(&library->config_free, "nrt_sys_trace_config_free");
  Resolve(&library->config_set_max_events_per_nc, "nrt_sys_trace_config_set_max_events_per_nc");
  Resolve(&library->config_set_enabled_for_nc, "nrt_sys_trace_config_set_capture_enabled_for_nc");
  Resolve(&library->config_set_enabled_for_event_type,
          "nrt_sys_trace_config_set_capture_enabled_for_event_type");
  Resolve(&library->get_event_types, "nrt_sys_trace_get_event_types");
  Resolve(&library->free_event_types, "nrt_sys_trace_free_event_types");
  Resolve(&library->trace_start, "nrt_sys_trace_start");
  Resolve(&library->trace_stop, "nrt_sys_trace_stop");
  Resolve(&library->fetch_options_allocate, "nrt_sys_trace_fetch_options_allocate");
  Resolve(&library->fetch_options_free, "nrt_sys_trace_fetch_options_free");
  Resolve(&library->fetch_options_set_max_events_per_nc,
          "nrt_sys_trace_fetch_options_set_max_events_per_nc");
  Resolve(&library->fetch_options_set_nc_idx, "nrt_sys_trace_fetch_options_set_nc_idx");
  Resolve(&library->fetch_events, "nrt_sys_trace_fetch_events");
  Resolve(&library->buffer_free, "nrt_sys_trace_buffer_free");
}

}  // namespace neurontrace::tap
