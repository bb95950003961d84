// SPDX-License-Identifier: Apache-2.0
// Life cycle, topology and communicators of the simulated runtime, and the entry points of its
// workload.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tests/fake_nrt/event_json.h"
#include "tests/fake_nrt/fake_nrt.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/runtime.h"

using neurontrace::Runtime;
using neurontrace::Topology;

static_assert(sizeof(nrt_version_t) == 224);
static_assert(sizeof(nrt_instance_info_t) == 32);
static_assert(sizeof(NRT_STATUS) == 4);

namespace {

constexpr uint32_t kFamilyTrn2 = 5;
constexpr uint32_t kSize48xl = 7;

// Legal at any time, before nrt_init too.
NRT_STATUS CountCores(uint32_t Topology::*which, uint32_t* count) {
  if (count == nullptr) return NRT_INVALID;
  const auto topology = Topology::FromEnvironment();
  if (!topology) return NRT_INVALID;
  *count = (*topology).*which;
  return NRT_SUCCESS;
}

}  // namespace

NRT_STATUS nrt_init(nrt_framework_type_t, const char*, const char*) {
  return Runtime::Get().Init();
}

void nrt_close(void) { Runtime::Get().Close(); }

NRT_STATUS nrt_get_version(nrt_version_t* version, size_t size) {
  if (version == nullptr || size == 0) return NRT_INVALID;
  nrt_version_t full = {.rt_major = 2, .rt_minor = 31, .rt_patch = 24, .rt_maintenance = 0};
  std::snprintf(full.rt_detail, sizeof(full.rt_detail), "2.31.24.0 (simulated)");
  std::snprintf(full.git_hash, sizeof(full.git_hash), "0000000000000000000000000000000000000000");
  std::memcpy(version, &full, std::min(size, sizeof(full)));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_instance_info(nrt_instance_info_t* info, size_t size) {
  if (info == nullptr || size == 0) return NRT_INVALID;
  nrt_instance_info_t full = {.family = kFamilyTrn2, .size = kSize48xl};
  std::snprintf(full.arch_name, sizeof(full.arch_name), "V3");
  std::snprintf(full.device_revision, sizeof(full.device_revision), "A0");
  std::memcpy(info, &full, std::min(size, sizeof(full)));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_get_total_vnc_count(uint32_t* count) { return CountCores(&Topology::total, count); }
NRT_STATUS nrt_get_visible_vnc_count(uint32_t* count) {
  return CountCores(&Topology::visible, count);
}
NRT_STATUS nrt_get_total_nc_count(uint32_t* count) { return CountCores(&Topology::total, count); }
NRT_STATUS nrt_get_visible_nc_count(uint32_t* count) {
  return CountCores(&Topology::visible, count);
}

NRT_STATUS nrt_get_vnc_memory_stats(uint32_t vnc, nrt_vnc_memory_stats_t* stats, size_t size,
                                    size_t* size_written) {
  Runtime& runtime = Runtime::Get();
  if (!runtime.IsOpen()) return NRT_UNINITIALIZED;
  if (stats == nullptr || vnc >= runtime.topology().visible) return NRT_INVALID;
  const nrt_vnc_memory_stats_t full = {.bytes_used = 5368709120, .bytes_limit = 25769803776};
  std::memcpy(stats, &full, std::min(size, sizeof(full)));
  if (size_written != nullptr) *size_written = std::min(size, sizeof(full));
  return NRT_SUCCESS;
}

NRT_STATUS nrt_host_device_id_get(int device, uint32_t* host_device) {
  if (device < 0 || host_device == nullptr) return NRT_INVALID;
  *host_device = static_cast<uint32_t>(device);
  return NRT_SUCCESS;
}

const char* nrt_get_status_as_str(NRT_STATUS status) {
  switch (status) {
    case NRT_SUCCESS:
      return "NRT_SUCCESS";
    case NRT_FAILURE:
      return "NRT_FAILURE";
    case NRT_INVALID:
      return "NRT_INVALID";
    case NRT_INVALID_HANDLE:
      return "NRT_INVALID_HANDLE";
    case NRT_RESOURCE:
      return "NRT_RESOURCE";
    case NRT_TIMEOUT:
      return "NRT_TIMEOUT";
    case NRT_UNINITIALIZED:
      return "NRT_UNINITIALIZED";
    case NRT_CLOSED:
      return "NRT_CLOSED";
  }
  return "UNKNOWN";
}

NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t g_device_id, uint32_t g_device_count) {
  if (g_device_id >= g_device_count) return NRT_INVALID;
  return Runtime::Get().SetGlobalId(vnc, g_device_id);
}

NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t g_device_id, uint32_t g_device_count) {
  if (g_device_id >= g_device_count) return NRT_INVALID;
  return Runtime::Get().SetGlobalId(vnc, g_device_id);
}

NRT_STATUS nrt_load_collectives(const void*, size_t, int32_t vnc, int32_t, uint32_t g_device_id,
                                uint32_t g_device_count, nrt_model_t** model) {
  if (g_device_id >= g_device_count) return NRT_INVALID;
  if (model != nullptr) *model = nullptr;
  return Runtime::Get().SetGlobalId(vnc, g_device_id);
}

const fake_nrt_form* fake_nrt_define(const char* event_type, const char* phase,
                                     const fake_nrt_field* fields, size_t count) {
  return Runtime::Forms().Define(event_type, phase, fields, count);
}

uint64_t fake_nrt_string(const char* utf8) { return Runtime::Forms().InternEscaped(utf8); }
uint64_t fake_nrt_raw_json(const char* json) { return Runtime::Forms().InternRaw(json); }

uint64_t fake_nrt_next_tracking_id(uint32_t nc_idx) {
  if (nc_idx >= neurontrace::kCoresMax) return 0;
  return static_cast<uint64_t>(nc_idx) << neurontrace::kCoreIdShift |
         Runtime::Get().capture.ring(nc_idx).NextTracking();
}

bool fake_nrt_emit(const fake_nrt_event* event, fake_nrt_receipt* receipt) {
  if (event->nc_idx >= neurontrace::kCoresMax) return false;
  const auto accepted = Runtime::Get().capture.ring(event->nc_idx).Push(*event);
  if (accepted && receipt != nullptr) *receipt = *accepted;
  return accepted.has_value();
}

uint32_t fake_nrt_first_physical_core(void) {
  const Topology topology = Runtime::Get().topology();
  return topology.first * topology.physical_per_logical;
}

uint64_t fake_nrt_misuse_count(void) { return Runtime::Get().misuse.count(); }
uint64_t fake_nrt_live_buffers(void) { return Runtime::Get().buffers.live(); }
