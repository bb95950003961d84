// SPDX-License-Identifier: Apache-2.0
// The comparison's events into the rings of the simulated Neuron Runtime, where the tap finds them.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/compare_lttng/producer.h"
#include "tests/bench/event_mix.h"
#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/nrt_api.h"

namespace neurontrace {
namespace {

constexpr uint32_t kWorld = 128;

// The runtime's form for each shape of the mix.
std::vector<const fake_nrt_form*> DefineForms() {
  std::vector<const fake_nrt_form*> forms;
  const EventMix mix(0, 0, EventMix::Memory::kDefault);
  for (const Shape& shape : mix.shapes()) {
    const char* const phase = shape.phase == Phase::kStart  ? "start"
                              : shape.phase == Phase::kStop ? "stop"
                                                            : "instant";
    std::vector<std::string> names;
    for (const ShapeKey& key : shape.keys) names.emplace_back(key.name);
    std::vector<fake_nrt_field> fields;
    for (size_t i = 0; i < shape.keys.size(); ++i) {
      const ValueType type = shape.keys[i].type;
      fields.push_back({names[i].c_str(), type == ValueType::kString ? FAKE_NRT_STRING
                                          : type == ValueType::kBool ? FAKE_NRT_BOOL
                                                                     : FAKE_NRT_UNSIGNED});
    }
    forms.push_back(fake_nrt_define(std::string(shape.event_type).c_str(), phase, fields.data(),
                                    fields.size()));
  }
  return forms;
}

const std::vector<const fake_nrt_form*>& Forms() {
  static const std::vector<const fake_nrt_form*> forms = DefineForms();
  return forms;
}

}  // namespace
}  // namespace neurontrace

int compare_begin(uint32_t cores, uint32_t first_gid) {
  if (nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS) {
    std::fputs("nrt_init failed\n", stderr);
    return 1;
  }
  for (uint32_t core = 0; core < cores; ++core) {
    nrt_build_global_comm(static_cast<int32_t>(core), first_gid + core, neurontrace::kWorld);
  }
  return neurontrace::Forms().empty() ? 1 : 0;
}

uint64_t compare_text(const char* text) { return fake_nrt_string(text); }

int compare_emit(const compare_event* event) {
  fake_nrt_event out = {.form = neurontrace::Forms()[event->shape],
                        .nc_idx = event->nc_idx,
                        .has_nrta_seq_id = false,
                        .thread_id = event->thread_id,
                        .tracking_id = event->tracking_id,
                        .timestamp_ns = event->timestamp_ns,
                        .nrta_seq_id = 0,
                        .values = {}};
  std::copy_n(event->values, COMPARE_VALUES_MAX, out.values);
  return fake_nrt_emit(&out, nullptr) ? 1 : 0;
}

void compare_end() { nrt_close(); }
