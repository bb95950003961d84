// SPDX-License-Identifier: Apache-2.0
// The libnrt.so.1 of the replay: of the runtime's interface what the tap needs, over ReplayRuntime,
// and two functions for the program that is linked with it.
#include <cstdlib>
#include <cstring>

#include "tests/bench/compare_lttng/replay.h"
#include "tests/bench/compare_lttng/replay_runtime.h"
#include "tests/bench/event_mix.h"
#include "tests/fake_nrt/nrt_api.h"

using neurontrace::EventMix;
using neurontrace::ReplayRuntime;

struct nrt_sys_trace_config {
  uint64_t ring_events = uint64_t{1} << 20;
};

struct nrt_sys_trace_fetch_options {
  uint64_t events_max = UINT64_MAX;
  uint32_t core = 0;
};

void compare_replay_begin(uint64_t seed, uint32_t cores, uint32_t first_gid) {
  ReplayRuntime::Get().Begin(seed, cores, first_gid);
}

double compare_replay_run(uint64_t events, double rate, uint64_t* taken) {
  const ReplayRuntime::Sums sums = ReplayRuntime::Get().Run(events, rate);
  *taken = sums.taken;
  return sums.seconds;
}

NRT_STATUS nrt_init(nrt_framework_type_t, const char*, const char*) { return NRT_SUCCESS; }
void nrt_close(void) { ReplayRuntime::Get().StopTrace(); }

NRT_STATUS nrt_build_global_comm(int32_t, uint32_t, uint32_t) { return NRT_SUCCESS; }

NRT_STATUS nrt_get_visible_vnc_count(uint32_t* count) {
  *count = ReplayRuntime::Get().cores();
  return NRT_SUCCESS;
}
NRT_STATUS nrt_get_total_vnc_count(uint32_t* count) { return nrt_get_visible_vnc_count(count); }

NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t** config) {
  *config = new nrt_sys_trace_config;
  return NRT_SUCCESS;
}
void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t* config) { *config = {}; }
void nrt_sys_trace_config_free(nrt_sys_trace_config_t* config) { delete config; }
void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t* config, uint64_t events) {
  config->ring_events = events;
}
void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t*, uint32_t, bool) {}
NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t*,
                                                                   const char*, bool) {
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_get_event_types(const char*** event_types, size_t* count) {
  const EventMix mix(0, 0, EventMix::Memory::kDefault);
  *count = mix.shapes().size();
  *event_types = static_cast<const char**>(std::calloc(*count, sizeof(char*)));
  for (size_t i = 0; i < *count; ++i) {
    (*event_types)[i] = strdup(std::string(mix.shapes()[i].event_type).c_str());
  }
  return NRT_SUCCESS;
}
void nrt_sys_trace_free_event_types(const char** event_types, size_t count) {
  for (size_t i = 0; i < count; ++i) std::free(const_cast<char*>(event_types[i]));
  std::free(event_types);
}

NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t* config) {
  ReplayRuntime::Get().StartTrace(config->ring_events);
  return NRT_SUCCESS;
}
NRT_STATUS nrt_sys_trace_stop(void) {
  ReplayRuntime::Get().StopTrace();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t** options) {
  *options = new nrt_sys_trace_fetch_options;
  return NRT_SUCCESS;
}
void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t* options) {
  *options = {};
}
void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t* options) { delete options; }
void nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t* options,
                                                       uint64_t events) {
  options->events_max = events;
}
void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t* options,
                                            uint64_t nc_idx) {
  options->core = static_cast<uint32_t>(nc_idx);
}

NRT_STATUS nrt_sys_trace_fetch_events(char** buffer, size_t* written_size,
                                      const nrt_sys_trace_fetch_options_t* options) {
  if (options == nullptr) return NRT_INVALID;  // the tap asks for one core at a time
  *buffer = ReplayRuntime::Get().Fetch(options->core, options->events_max, *written_size);
  return *buffer == nullptr ? NRT_FAILURE : NRT_SUCCESS;
}
void nrt_sys_trace_buffer_free(char* buffer) { ReplayRuntime::Get().ReleaseBuffer(buffer); }
