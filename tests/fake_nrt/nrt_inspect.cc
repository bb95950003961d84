// SPDX-License-Identifier: Apache-2.0
// nrt_inspect_*: another profiler that wants the one capture of the process.
#include <array>
#include <cstdlib>
#include <cstring>

#include "tests/fake_nrt/name_list.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/runtime.h"

using neurontrace::Runtime;
using neurontrace::TraceCall;

namespace {

constexpr std::array<std::string_view, 4> kActivities = {"system_profile", "device_profile",
                                                         "host_memory", "cpu_util"};
constexpr unsigned kSystemProfile = 1;

// NRT_SUCCESS after `change(*config)` for a live config; a misuse otherwise.
template <typename Change>
NRT_STATUS Set(const char* function, nrt_inspect_config_t* config, Change change) {
  const TraceCall call(function);
  if (call.refused()) return call.status();
  if (config == nullptr) return NRT_INVALID;
  if (!call.runtime().inspect_configs.IsLive(config)) {
    return call.Misuse("the config is not allocated, or was freed", NRT_INVALID);
  }
  return change(*config);
}

NRT_STATUS ListActivities(unsigned activities, const char*** list, size_t* count) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kActivities.size(); ++i) {
    if ((activities >> i & 1) != 0) names.push_back(kActivities[i]);
  }
  return neurontrace::MakeNameList(names, list, count);
}

}  // namespace

NRT_STATUS nrt_inspect_begin(void) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  const char* dir = std::getenv("NEURON_RT_INSPECT_OUTPUT_DIR");
  return call.runtime().BeginInspect({}, dir == nullptr || *dir == '\0' ? "./output" : dir);
}

NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t* config) {
  return Set(__func__, config, [](nrt_inspect_config& c) {
    if (!c.inspect || (c.activities & kSystemProfile) == 0) return NRT_SUCCESS;
    return Runtime::Get().BeginInspect(c.settings, c.output_dir);
  });
}

NRT_STATUS nrt_inspect_stop(void) {
  const TraceCall call(__func__);
  return call.refused() ? call.status() : call.runtime().EndInspect();
}

NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t** config) {
  const TraceCall call(__func__);
  if (call.refused()) return call.status();
  if (config == nullptr) return NRT_INVALID;
  *config = call.runtime().inspect_configs.New();
  return NRT_SUCCESS;
}

NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t* config) {
  return Set(__func__, config, [](nrt_inspect_config& c) {
    c = nrt_inspect_config();
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t* config) {
  return Set(__func__, config, [](nrt_inspect_config& c) {
    return Runtime::Get().inspect_configs.Free(&c) ? NRT_SUCCESS : NRT_INVALID;
  });
}

NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t* config, int id) {
  return Set(__func__, config, [id](nrt_inspect_config& c) {
    c.session_id = id;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t* config, const char* directory) {
  return Set(__func__, config, [directory](nrt_inspect_config& c) {
    if (directory == nullptr || *directory == '\0') return NRT_INVALID;
    c.output_dir = directory;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t* config,
                                                              uint64_t events) {
  return Set(__func__, config, [events](nrt_inspect_config& c) {
    c.settings.max_events_per_nc = events;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t* config,
                                                         uint32_t nc_idx, bool enabled) {
  return Set(__func__, config, [nc_idx, enabled](nrt_inspect_config& c) {
    if (nc_idx >= neurontrace::kCoresMax) return NRT_INVALID;
    c.settings.cores.set(nc_idx, enabled);
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
    nrt_inspect_config_t* config, const char* event_type, bool enabled) {
  return Set(__func__, config, [event_type, enabled](nrt_inspect_config& c) {
    const int type = event_type == nullptr ? -1 : Runtime::Forms().FindListed(event_type);
    if (type < 0) return NRT_INVALID;
    c.settings.types.set(static_cast<size_t>(type), enabled);
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t* config, bool enabled) {
  return Set(__func__, config, [enabled](nrt_inspect_config& c) {
    c.inspect = enabled;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t* config,
                                                         bool enabled) {
  return Set(__func__, config, [enabled](nrt_inspect_config& c) {
    c.inspect_on_fail = enabled;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t* config, const char* activity,
                                           bool enabled) {
  return Set(__func__, config, [activity, enabled](nrt_inspect_config& c) {
    if (activity == nullptr) return NRT_INVALID;
    unsigned bits = std::string_view(activity) == "all" ? 0xf : 0;
    for (size_t i = 0; i < kActivities.size(); ++i) {
      if (kActivities[i] == activity) bits |= 1u << i;
    }
    if (bits == 0) return NRT_INVALID;
    c.activities = enabled ? c.activities | bits : c.activities & ~bits;
    return NRT_SUCCESS;
  });
}

NRT_STATUS nrt_inspect_config_get_all_activity_types(const char*** activities, size_t* count) {
  return ListActivities(0xf, activities, count);
}

NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t* config,
                                                         const char*** activities, size_t* count) {
  return Set(__func__, config, [activities, count](nrt_inspect_config& c) {
    return ListActivities(c.activities, activities, count);
  });
}

void nrt_inspect_config_free_activity_types(const char** activities, size_t count) {
  neurontrace::FreeNameList(activities, count);
}
