// SPDX-License-Identifier: Apache-2.0 // tidy: allow(pragma-once) LTTng's macros read it several
// times One tracepoint for each event type and phase, as LTTng's manual has it: type and phase are
// then the number in the event's header, which is the smallest form. Fields are those of the
// runtime's event without `id`, which follows from nc_idx and nc_local_id.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER neuron

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tests/bench/compare_lttng/lttng_provider.h"

#if !defined(COMPARE_LTTNG_PROVIDER) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define COMPARE_LTTNG_PROVIDER

#include <lttng/tracepoint.h>

#include "tests/bench/compare_lttng/producer.h"

#ifndef COMPARE_TRACEPOINTS  // the macros, once
// clang-format off
#define COMPARE_U(name, index) lttng_ust_field_integer(uint64_t, name, event->values[index])
#define COMPARE_S(name, index) \
  lttng_ust_field_string(name, (const char*)(uintptr_t)event->values[index])
#define COMPARE_STANDARD                                             \
  lttng_ust_field_integer(uint64_t, timestamp_ns, event->timestamp_ns) \
  lttng_ust_field_integer(uint32_t, nc_idx, event->nc_idx)           \
  lttng_ust_field_integer(uint64_t, nc_local_id, event->nc_local_id) \
  lttng_ust_field_integer(uint64_t, tracking_id, event->tracking_id) \
  lttng_ust_field_integer(uint64_t, thread_id, event->thread_id)     \
  lttng_ust_field_integer(int32_t, worker_gid, event->worker_gid)
// clang-format on

// T(event type and phase, class): every tracepoint.
#define COMPARE_TRACEPOINTS(T)         \
  T(nrt_execute_start, model)          \
  T(nrt_execute_stop, bare)            \
  T(kmgr_exec_core_start, model)       \
  T(kmgr_exec_core_stop, bare)         \
  T(kbl_exec_pre_start, block)         \
  T(kbl_exec_pre_stop, bare)           \
  T(kbl_exec_core_start, block)        \
  T(kbl_exec_core_stop, bare)          \
  T(enc_barrier_start, barrier)        \
  T(enc_barrier_stop, bare)            \
  T(kbl_exec_wait_start, block)        \
  T(kbl_exec_wait_stop, bare)          \
  T(kbl_exec_post_start, block)        \
  T(kbl_exec_post_stop, bare)          \
  T(nrt_tensor_write_start, tensor)    \
  T(nrt_tensor_write_stop, bare)       \
  T(nrt_tensor_read_start, tensor)     \
  T(nrt_tensor_read_stop, bare)        \
  T(dmem_buf_copyin_start, copy)       \
  T(dmem_buf_copyin_stop, bare)        \
  T(dmem_buf_copyout_start, copy)      \
  T(dmem_buf_copyout_stop, bare)       \
  T(nc_exec_running_start, running)    \
  T(nc_exec_running_stop, device_time) \
  T(cc_running_start, collective)      \
  T(cc_running_stop, device_time)      \
  T(cc_exec_barrier_start, device)     \
  T(cc_exec_barrier_stop, device_time) \
  T(timestamp_sync_point_instant, sync)

#define COMPARE_CLASS(name, ...)                                                          \
  LTTNG_UST_TRACEPOINT_EVENT_CLASS(neuron, name,                                          \
                                   LTTNG_UST_TP_ARGS(const struct compare_event*, event), \
                                   LTTNG_UST_TP_FIELDS(COMPARE_STANDARD __VA_ARGS__))
#define COMPARE_INSTANCE(name, class)                              \
  LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(neuron, class, neuron, name, \
                                      LTTNG_UST_TP_ARGS(const struct compare_event*, event))
#endif

// The classes hold the attributes of tests/bench/event_mix.cc, in its order.
COMPARE_CLASS(bare)
COMPARE_CLASS(model, COMPARE_U(model_id, 0) COMPARE_S(model_name, 1))
COMPARE_CLASS(block, COMPARE_U(exec_id, 0) COMPARE_U(model_id, 1) COMPARE_S(model_name, 2))
COMPARE_CLASS(barrier, COMPARE_U(peer_id, 0) COMPARE_U(exec_id, 1) COMPARE_U(nec_dev_id, 2))
COMPARE_CLASS(tensor, COMPARE_U(tensor_id, 0) COMPARE_U(size, 1))
COMPARE_CLASS(copy, COMPARE_S(mem_type, 0) COMPARE_U(mem_handle, 1) COMPARE_U(offset, 2)
                        COMPARE_U(size, 3))
COMPARE_CLASS(running, COMPARE_U(device_core_idx, 0) COMPARE_U(exec_id, 1)
                           COMPARE_U(nc_timestamp_ns, 2) COMPARE_U(model_id, 3))
COMPARE_CLASS(collective, COMPARE_U(gid, 0) COMPARE_U(op_id, 1) COMPARE_U(exec_id, 2)
                              COMPARE_U(nc_timestamp_ns, 3) COMPARE_S(algorithm, 4))
COMPARE_CLASS(device, COMPARE_U(nc_timestamp_ns, 0) COMPARE_U(model_id, 1))
COMPARE_CLASS(device_time, COMPARE_U(nc_timestamp_ns, 0))
COMPARE_CLASS(sync,
              COMPARE_U(exec_id, 0) COMPARE_U(nc_timestamp_ns, 1) COMPARE_U(cpu_timestamp_ns, 2))

COMPARE_TRACEPOINTS(COMPARE_INSTANCE)

#endif

#include <lttng/tracepoint-event.h>
