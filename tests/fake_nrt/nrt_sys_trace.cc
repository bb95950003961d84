// SPDX-License-Identifier: Apache-2.0
// nrt_sys_trace_*: the interface to the capture of the simulated runtime.
#include <cstdlib>
#include <cstring>

#include "tests/fake_nrt/name_list.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/runtime.h"

using neurontrace::CaptureOwner;
using neurontrace::CaptureSettings;
using neurontrace::FetchBounds;
using neurontrace::MakeNameList;
using neurontrace::Runtime;
using neurontrace::TraceCall;

namespace {

// The settings behind a handle, or nullptr after reporting what is wrong with it.
CaptureSettings* SettingsOf(const TraceCall& call, nrt_sys_trace_config_t* config) {
  if (call.refused()) return nullptr;
  if (call.runtime().configs.IsLive(config)) return &config->settings;
  call.Misuse("the config is not allocated, or was freed", NRT_INVALID);
  return nullptr;
}

const FetchBounds* BoundsOf(const TraceCall& call, const nrt_sys_trace_fetch_options_t* options) {
  if (call.refused()) return nullptr;
  if (call.runtime().fetch_options.IsLive(options)) return &options->bounds;
  call.Misuse("the fetch options are not allocated, or were freed", NRT_INVALID);
  return nullptr;
}

FetchBounds* BoundsOf(const TraceCall& call, nrt_sys_trace_fetch_options_t* options) {
  const nrt_sys_trace_fetch_options_t* same = options;
  return BoundsOf(call, same) == nullptr ? nullptr : &options->bounds;
}

}  // namespace

NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t** config) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  if (config == nullptr) return NRT_INVALID;
  *config = call.runtime().configs.New();
  return NRT_SUCCESS;
}

void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t* config) {
  const TraceCall call(__func__);
  if (CaptureSettings* settings = SettingsOf(call, config)) *settings = CaptureSettings();
}

void nrt_sys_trace_config_free(nrt_sys_trace_config_t* config) {
  const TraceCall call(__func__);
  if (SettingsOf(call, config) != nullptr) call.runtime().configs.Free(config);
}

void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t* config, uint64_t events) {
  const TraceCall call(__func__);
  if (CaptureSettings* settings = SettingsOf(call, config)) settings->max_events_per_nc = events;
}

void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t* config,
                                                     uint32_t nc_idx, bool enabled) {
  const TraceCall call(__func__);
  CaptureSettings* settings = SettingsOf(call, config);
  if (settings != nullptr && nc_idx < neurontrace::kCoresMax) settings->cores.set(nc_idx, enabled);
}

NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(nrt_sys_trace_config_t* config,
                                                                   const char* event_type,
                                                                   bool enabled) {
  const TraceCall call(__func__);
  CaptureSettings* settings = SettingsOf(call, config);
  if (settings == nullptr) return call.refused() ? call.status() : NRT_INVALID;
  const int type = event_type == nullptr ? -1 : Runtime::Forms().FindListed(event_type);
  if (type < 0) return NRT_INVALID;
  settings->types.set(static_cast<size_t>(type), enabled);
  return NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(nrt_sys_trace_config_t* config,
                                                        const char*** event_types, size_t* count) {
  const TraceCall call(__func__);
  const CaptureSettings* settings = SettingsOf(call, config);
  if (settings == nullptr) return call.refused() ? call.status() : NRT_INVALID;
  std::vector<std::string_view> enabled;
  for (size_t i = 0; i < Runtime::Forms().listed_types().size(); ++i) {
    if (settings->types.test(i)) enabled.push_back(Runtime::Forms().listed_types()[i]);
  }
  return MakeNameList(enabled, event_types, count);
}

NRT_STATUS nrt_sys_trace_get_event_types(const char*** event_types, size_t* count) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  const auto& listed = Runtime::Forms().listed_types();
  return MakeNameList({listed.begin(), listed.end()}, event_types, count);
}

void nrt_sys_trace_free_event_types(const char** event_types, size_t count) {
  neurontrace::FreeNameList(event_types, count);
}

NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t* config) {
  const TraceCall call(__func__);
  const CaptureSettings* settings = SettingsOf(call, config);
  if (settings == nullptr) return call.refused() ? call.status() : NRT_INVALID;
  Runtime& runtime = call.runtime();
  if (runtime.capture.owner() != CaptureOwner::kNone) {
    return call.Misuse("a capture is running already", NRT_FAILURE);
  }
  return runtime.capture.Start(CaptureOwner::kSysTrace, *settings, runtime.topology().visible)
             ? NRT_SUCCESS
             : NRT_RESOURCE;
}

NRT_STATUS nrt_sys_trace_stop(void) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  const CaptureOwner owner = call.runtime().capture.Stop();
  if (owner == CaptureOwner::kInspect) {
    return call.Misuse("ended the capture of nrt_inspect", NRT_SUCCESS);
  }
  return owner == CaptureOwner::kNone ? NRT_FAILURE : NRT_SUCCESS;
}

NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t** options) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  if (options == nullptr) return NRT_INVALID;
  *options = call.runtime().fetch_options.New();
  return NRT_SUCCESS;
}

void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t* options) {
  const TraceCall call(__func__);
  if (FetchBounds* bounds = BoundsOf(call, options)) *bounds = FetchBounds();
}

void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t* options) {
  const TraceCall call(__func__);
  if (BoundsOf(call, options) != nullptr) call.runtime().fetch_options.Free(options);
}

void nrt_sys_trace_fetch_options_set_max_events_per_nc(nrt_sys_trace_fetch_options_t* options,
                                                       uint64_t events) {
  const TraceCall call(__func__);
  if (FetchBounds* bounds = BoundsOf(call, options)) bounds->max_events_per_nc = events;
}

void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t* options,
                                            uint64_t nc_idx) {
  const TraceCall call(__func__);
  if (FetchBounds* bounds = BoundsOf(call, options)) bounds->nc_idx = nc_idx;
}

NRT_STATUS nrt_sys_trace_fetch_events(char** buffer, size_t* written_size,
                                      const nrt_sys_trace_fetch_options_t* options) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  if (buffer == nullptr || written_size == nullptr) return NRT_INVALID;
  if (*buffer != nullptr) return call.Misuse("*buffer is not NULL", NRT_INVALID);
  const FetchBounds all;
  const FetchBounds* bounds = options == nullptr ? &all : BoundsOf(call, options);
  if (bounds == nullptr) return NRT_INVALID;
  if (call.runtime().capture.owner() == CaptureOwner::kInspect) {
    call.Misuse("took events out of the capture of nrt_inspect", NRT_SUCCESS);
  }
  return call.runtime().Fetch(*bounds, buffer, written_size);
}

void nrt_sys_trace_buffer_free(char* buffer) {
  const TraceCall call(__func__);
  call.runtime().buffers.ReleaseBuffer(buffer, call.runtime().misuse);
}
