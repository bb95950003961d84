// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "tests/fake_nrt/fake_nrt.h"

namespace neurontrace {

// A form with the names that the ground truth needs.
struct NamedForm {
  const fake_nrt_form* form;
  const char* event_type;
  const char* phase;
};

// A span's two forms.
struct SpanForms {
  NamedForm start;
  NamedForm stop;
};

// Every event that the workload emits, as the runtime is known to write it. Shared by all cores,
// constant after construction.
struct WorkloadForms {
  WorkloadForms();

  SpanForms load, execute, kmgr, submit, pre, core, wait, post;
  SpanForms enc_barrier, device_barrier, running, collective, model_switch;
  SpanForms consume_cc, consume_errors, consume_stdio;
  SpanForms tensor_read, tensor_write, tensor_allocate, tensor_free;
  SpanForms copyin, copyout, dma_alloc, dma_dealloc;
  NamedForm sync_point, notify, future;

  std::array<uint64_t, 2> model_id;
  std::array<uint64_t, 2> model_name;  // texts
  uint64_t empty_name;
  uint64_t ring;  // name of a collective's algorithm
  uint64_t host_memory;
  uint64_t tensors;  // what device memory is used for
  uint64_t nested;   // data of the event of the future
  uint64_t extreme_text;
};

}  // namespace neurontrace
