// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/workload_forms.h"

#include <initializer_list>
#include <vector>

namespace neurontrace {
namespace {

using Fields = std::initializer_list<fake_nrt_field>;

NamedForm Define(const char* event_type, const char* phase, Fields fields) {
  const std::vector<fake_nrt_field> list(fields);
  return {fake_nrt_define(event_type, phase, list.data(), list.size()), event_type, phase};
}

SpanForms Span(const char* event_type, Fields start, Fields stop) {
  return {Define(event_type, "start", start), Define(event_type, "stop", stop)};
}

constexpr fake_nrt_field kModelId = {"model_id", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kModelName = {"model_name", FAKE_NRT_STRING};
constexpr fake_nrt_field kExecId = {"exec_id", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kCore = {"device_core_idx", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kTicks = {"nc_timestamp_ns", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kTensor = {"tensor_id", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kSize = {"size", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kHbm = {"hbm_idx", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kNcHbm = {"is_nc_hbm", FAKE_NRT_BOOL};
constexpr fake_nrt_field kMla = {"mla_idx", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kUsage = {"usage_type", FAKE_NRT_STRING};
constexpr fake_nrt_field kTotal = {"total_bytes", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kUsageTotal = {"usage_type_total_bytes", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kAddress = {"physical_address", FAKE_NRT_HEX_STRING};
constexpr fake_nrt_field kHandle = {"mem_handle", FAKE_NRT_UNSIGNED};
constexpr fake_nrt_field kOffset = {"offset", FAKE_NRT_UNSIGNED};

}  // namespace

WorkloadForms::WorkloadForms() {
  load = Span("nrt_load", {}, {kModelId, kModelName});
  execute = Span("nrt_execute", {kModelId, kModelName}, {});
  kmgr = Span("kmgr_exec_core", {kModelId}, {});
  submit = Span("nrt_model_submit", {kModelId, kModelName}, {});
  pre = Span("kbl_exec_pre", {kExecId, kModelId, kModelName}, {});
  core = Span("kbl_exec_core", {kExecId, kModelId}, {});
  wait = Span("kbl_exec_wait", {kExecId, kModelId}, {});
  post = Span("kbl_exec_post", {kExecId, kModelId}, {});
  enc_barrier = Span("enc_barrier",
                     {{"peer_id", FAKE_NRT_SIGNED}, kExecId, {"nec_dev_id", FAKE_NRT_SIGNED}}, {});
  device_barrier = Span("cc_exec_barrier", {kTicks, kModelId}, {kTicks});
  running = Span("nc_exec_running", {kCore, kExecId, kTicks, kModelId, kModelName}, {kTicks});
  collective = Span("cc_running",
                    {{"gid", FAKE_NRT_UNSIGNED},
                     {"op_id", FAKE_NRT_UNSIGNED},
                     kExecId,
                     kTicks,
                     {"algorithm", FAKE_NRT_STRING}},
                    {kTicks});
  model_switch = Span("nc_model_switch", {kCore, kModelId, kExecId, kTicks}, {kTicks});
  consume_cc = Span("exec_consume_cc_core_notifications", {kExecId, kModelId}, {});
  consume_errors = Span("notification_consume_errors", {kExecId, kModelId}, {});
  consume_stdio = Span("exec_consume_gpsimd_stdio", {kExecId, kModelId}, {});
  tensor_read = Span("nrt_tensor_read", {kTensor, kSize}, {});
  // Some versions write these as strings; a reader has to take both.
  tensor_write =
      Span("nrt_tensor_write",
           {{"tensor_id", FAKE_NRT_DECIMAL_STRING}, {"size", FAKE_NRT_DECIMAL_STRING}}, {});
  tensor_allocate = Span("nrt_tensor_allocate", {kTensor, kSize}, {});
  tensor_free = Span("nrt_tensor_free", {kTensor, kSize, {"ref_count", FAKE_NRT_UNSIGNED}}, {});
  copyin = Span("dmem_buf_copyin", {{"mem_type", FAKE_NRT_UNSIGNED}, kHandle, kOffset, kSize}, {});
  copyout = Span("dmem_buf_copyout", {{"mem_type", FAKE_NRT_STRING}, kHandle, kOffset, kSize}, {});
  dma_alloc = Span("nrt_dma_mem_alloc", {kHbm, kNcHbm, {"is_aligned", FAKE_NRT_BOOL}, kMla, kUsage},
                   {{"allocated_bytes", FAKE_NRT_UNSIGNED},
                    kTotal,
                    kUsageTotal,
                    {"return_code", FAKE_NRT_SIGNED},
                    kAddress});
  dma_dealloc = Span("nrt_dma_mem_dealloc", {kHbm, kNcHbm, kMla, kUsage, kAddress},
                     {{"freed_bytes", FAKE_NRT_UNSIGNED}, kTotal, kUsageTotal});
  sync_point = Define("timestamp_sync_point", "instant",
                      {kExecId, kTicks, {"cpu_timestamp_ns", FAKE_NRT_UNSIGNED}});
  notify = Define(
      "hw_notify", "instant",
      {kCore, {"hint", FAKE_NRT_UNSIGNED}, {"custom_data", FAKE_NRT_UNSIGNED}, kTicks, kExecId});
  future = Define("some_future_event", "instant",
                  {{"nested", FAKE_NRT_RAW_JSON}, {"text", FAKE_NRT_STRING}, kExecId});

  model_id = {1578576049, 9007199254740995};
  model_name = {fake_nrt_string("/models/prefill.neff"), fake_nrt_string("/models/decode.neff")};
  empty_name = fake_nrt_string("");
  ring = fake_nrt_string("ring");
  host_memory = fake_nrt_string("host");
  tensors = fake_nrt_string("Tensors");
  nested = fake_nrt_raw_json("{\"a\":[1,2.5,null],\"b\":{\"c\":true}}");
  extreme_text = fake_nrt_string("caf\u00e9 \"quoted\" \\ \x01 \U0001f600");
}

}  // namespace neurontrace
