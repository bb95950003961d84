// SPDX-License-Identifier: Apache-2.0
// The simulated runtime has to be much faster than what is measured with it.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/workload_forms.h"

namespace neurontrace {
namespace {

constexpr uint64_t kEvents = 1 << 16;

void StartCapture() {
  setenv("NEURON_RT_NUM_CORES", "1", 1);
  nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "");
  nrt_sys_trace_config_t* config = nullptr;
  nrt_sys_trace_config_allocate(&config);
  nrt_sys_trace_config_set_max_events_per_nc(config, kEvents);
  nrt_sys_trace_start(config);
  nrt_sys_trace_config_free(config);
}

fake_nrt_event Event(const WorkloadForms& forms) {
  return {.form = forms.running.start.form,
          .nc_idx = 0,
          .thread_id = 1113601,
          .tracking_id = 3377699720529028,
          .timestamp_ns = 1755115507555215300,
          .values = {12, 7, 144438800113, forms.model_id[0], forms.model_name[0]}};
}

void BM_Emit(benchmark::State& state) {
  const WorkloadForms forms;
  StartCapture();
  const fake_nrt_event event = Event(forms);
  for (auto _ : state) fake_nrt_emit(&event, nullptr);
  state.SetItemsProcessed(state.iterations());
  nrt_close();
}
BENCHMARK(BM_Emit);

void BM_Fetch(benchmark::State& state) {
  const WorkloadForms forms;
  StartCapture();
  const fake_nrt_event event = Event(forms);
  uint64_t bytes_total = 0;
  for (auto _ : state) {
    state.PauseTiming();
    for (uint64_t i = 0; i < kEvents; ++i) fake_nrt_emit(&event, nullptr);
    state.ResumeTiming();
    char* buffer = nullptr;
    size_t bytes = 0;
    nrt_sys_trace_fetch_events(&buffer, &bytes, nullptr);
    nrt_sys_trace_buffer_free(buffer);
    bytes_total += bytes;
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(static_cast<int64_t>(bytes_total));
  nrt_close();
}
BENCHMARK(BM_Fetch)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
