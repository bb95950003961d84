/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface of the Neuron Runtime that the simulated libnrt.so.1 offers, written from the
 * public facts about that interface: names, argument types and status values, nothing of its text.
 * For the simulated runtime, its workload and their tests only: the tap and the agent find the
 * functions by name at run time and keep prototypes of their own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NRT_EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  NRT_SUCCESS = 0,
  NRT_FAILURE = 1,
  NRT_INVALID = 2,
  NRT_INVALID_HANDLE = 3,
  NRT_RESOURCE = 4,
  NRT_TIMEOUT = 5,
  NRT_UNINITIALIZED = 13,
  NRT_CLOSED = 14,
} NRT_STATUS;

/* ---- life cycle, version and topology ---- */

typedef enum { NRT_FRAMEWORK_TYPE_NO_FW = 1, NRT_FRAMEWORK_TYPE_PYTORCH = 2 } nrt_framework_type_t;

typedef struct {
  uint64_t rt_major;
  uint64_t rt_minor;
  uint64_t rt_patch;
  uint64_t rt_maintenance;
  char rt_detail[128];
  char git_hash[64];
} nrt_version_t; /* 224 bytes */

typedef struct {
  uint32_t family;
  uint32_t size;
  char arch_name[16];
  char device_revision[8];
} nrt_instance_info_t; /* 32 bytes */

typedef struct {
  size_t bytes_used;
  size_t bytes_limit;
} nrt_vnc_memory_stats_t;

NRT_EXPORT NRT_STATUS nrt_init(nrt_framework_type_t framework, const char* framework_version,
                               const char* framework_library_version);
NRT_EXPORT void nrt_close(void);
NRT_EXPORT NRT_STATUS nrt_get_version(nrt_version_t* version, size_t size);
NRT_EXPORT NRT_STATUS nrt_get_instance_info(nrt_instance_info_t* info, size_t size);
NRT_EXPORT NRT_STATUS nrt_get_total_vnc_count(uint32_t* count);
NRT_EXPORT NRT_STATUS nrt_get_visible_vnc_count(uint32_t* count);
NRT_EXPORT NRT_STATUS nrt_get_total_nc_count(uint32_t* count);
NRT_EXPORT NRT_STATUS nrt_get_visible_nc_count(uint32_t* count);
NRT_EXPORT NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t* stats,
                                               size_t size, size_t* size_written);
NRT_EXPORT NRT_STATUS nrt_host_device_id_get(int device, uint32_t* host_device);
NRT_EXPORT const char* nrt_get_status_as_str(NRT_STATUS status);

/* ---- communicators: each tells the global device id (the worker_gid) of a logical core ---- */

typedef struct nrt_model nrt_model_t;

NRT_EXPORT NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id,
                                            uint32_t g_device_count);
NRT_EXPORT NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id,
                                              uint32_t g_device_count);
NRT_EXPORT NRT_STATUS nrt_load_collectives(const void* neff, size_t size, int32_t vnc,
                                           int32_t vnc_count, uint32_t g_device_id,
                                           uint32_t g_device_count, nrt_model_t** model);

/* ---- system trace ---- */

typedef struct nrt_sys_trace_config nrt_sys_trace_config_t;
typedef struct nrt_sys_trace_fetch_options nrt_sys_trace_fetch_options_t;

NRT_EXPORT NRT_STATUS nrt_sys_trace_config_allocate(nrt_sys_trace_config_t** config);
NRT_EXPORT void nrt_sys_trace_config_set_defaults(nrt_sys_trace_config_t* config);
NRT_EXPORT void nrt_sys_trace_config_free(nrt_sys_trace_config_t* config);
NRT_EXPORT void nrt_sys_trace_config_set_max_events_per_nc(nrt_sys_trace_config_t* config,
                                                           uint64_t events);
NRT_EXPORT void nrt_sys_trace_config_set_capture_enabled_for_nc(nrt_sys_trace_config_t* config,
                                                                uint32_t nc_idx, bool enabled);
NRT_EXPORT NRT_STATUS nrt_sys_trace_config_set_capture_enabled_for_event_type(
    nrt_sys_trace_config_t* config, const char* event_type, bool enabled);
NRT_EXPORT NRT_STATUS nrt_sys_trace_config_get_enabled_event_types(nrt_sys_trace_config_t* config,
                                                                   const char*** event_types,
                                                                   size_t* count);
NRT_EXPORT NRT_STATUS nrt_sys_trace_get_event_types(const char*** event_types, size_t* count);
NRT_EXPORT void nrt_sys_trace_free_event_types(const char** event_types, size_t count);
NRT_EXPORT NRT_STATUS nrt_sys_trace_start(nrt_sys_trace_config_t* config);
NRT_EXPORT NRT_STATUS nrt_sys_trace_stop(void);
NRT_EXPORT NRT_STATUS nrt_sys_trace_fetch_options_allocate(nrt_sys_trace_fetch_options_t** options);
NRT_EXPORT void nrt_sys_trace_fetch_options_set_defaults(nrt_sys_trace_fetch_options_t* options);
NRT_EXPORT void nrt_sys_trace_fetch_options_free(nrt_sys_trace_fetch_options_t* options);
NRT_EXPORT void nrt_sys_trace_fetch_options_set_max_events_per_nc(
    nrt_sys_trace_fetch_options_t* options, uint64_t events);
NRT_EXPORT void nrt_sys_trace_fetch_options_set_nc_idx(nrt_sys_trace_fetch_options_t* options,
                                                       uint64_t nc_idx);
/* *buffer must be NULL on entry; the text is to be given back with nrt_sys_trace_buffer_free. */
NRT_EXPORT NRT_STATUS nrt_sys_trace_fetch_events(char** buffer, size_t* written_size,
                                                 const nrt_sys_trace_fetch_options_t* options);
NRT_EXPORT void nrt_sys_trace_buffer_free(char* buffer);

/* ---- inspect: the runtime's own profiler, which shares the one capture of the process ---- */

typedef struct nrt_inspect_config nrt_inspect_config_t;

NRT_EXPORT NRT_STATUS nrt_inspect_begin(void);
NRT_EXPORT NRT_STATUS nrt_inspect_begin_with_options(nrt_inspect_config_t* config);
NRT_EXPORT NRT_STATUS nrt_inspect_stop(void);
NRT_EXPORT NRT_STATUS nrt_inspect_config_allocate(nrt_inspect_config_t** config);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_defaults(nrt_inspect_config_t* config);
NRT_EXPORT NRT_STATUS nrt_inspect_config_free(nrt_inspect_config_t* config);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_session_id(nrt_inspect_config_t* config, int id);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_output_dir(nrt_inspect_config_t* config,
                                                        const char* directory);
NRT_EXPORT NRT_STATUS
nrt_inspect_config_set_sys_trace_max_events_per_nc(nrt_inspect_config_t* config, uint64_t events);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_capture_enabled_for_nc(nrt_inspect_config_t* config,
                                                                    uint32_t nc_idx, bool enabled);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_capture_enabled_for_event_type_string(
    nrt_inspect_config_t* config, const char* event_type, bool enabled);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_enable_inspect(nrt_inspect_config_t* config,
                                                            bool enabled);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_enable_inspect_on_fail(nrt_inspect_config_t* config,
                                                                    bool enabled);
NRT_EXPORT NRT_STATUS nrt_inspect_config_set_activity(nrt_inspect_config_t* config,
                                                      const char* activity, bool enabled);
NRT_EXPORT NRT_STATUS nrt_inspect_config_get_all_activity_types(const char*** activities,
                                                                size_t* count);
NRT_EXPORT NRT_STATUS nrt_inspect_config_get_enabled_activity_types(nrt_inspect_config_t* config,
                                                                    const char*** activities,
                                                                    size_t* count);
NRT_EXPORT void nrt_inspect_config_free_activity_types(const char** activities, size_t count);

#ifdef __cplusplus
}
#endif
