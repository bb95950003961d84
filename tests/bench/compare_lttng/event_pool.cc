// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/compare_lttng/event_pool.h"

#include <algorithm>
#include <string>

#include "tests/bench/event_mix.h"

namespace neurontrace {
namespace {

constexpr uint64_t kEventsPerExecution = 312;
constexpr uint64_t kExecutions = 16;
constexpr uint64_t kTrackingMask = (uint64_t{1} << 50) - 1;

compare_event Convert(const MixEvent& from, const Shape& shape, uint32_t nc_idx) {
  compare_event event = {.shape = from.shape,
                         .nc_idx = nc_idx,
                         .timestamp_ns = from.fields.timestamp_ns,
                         .nc_local_id = 0,
                         .tracking_id = from.fields.tracking_id,
                         .thread_id = from.fields.thread_id,
                         .worker_gid = 0,
                         .values = {}};
  for (size_t i = 0; i < from.values.size(); ++i) {
    event.values[i] = shape.keys[i].type == ValueType::kString
                          ? compare_text(std::string(from.values[i].text).c_str())
                          : from.values[i].bits;
  }
  return event;
}

}  // namespace

EventPool::EventPool(uint64_t seed, uint32_t cores, uint32_t first_gid)
    : cores_(cores), time_scale_(cores, 1) {
  for (uint32_t nc_idx = 0; nc_idx < cores; ++nc_idx) {
    Core& core = cores_[nc_idx];
    EventMix mix(seed + nc_idx, nc_idx, EventMix::Memory::kDefault);
    for (uint64_t i = 0; i < kExecutions; ++i) {
      for (const MixEvent& event : mix.Take(kEventsPerExecution)) {
        core.events.push_back(Convert(event, mix.shapes()[event.shape], nc_idx));
        core.events.back().worker_gid = first_gid + nc_idx;
      }
    }
    // Hardware events come late, so neither the first nor the last need be at the end.
    const auto [first, last] = std::minmax_element(
        core.events.begin(), core.events.end(),
        [](const auto& a, const auto& b) { return a.timestamp_ns < b.timestamp_ns; });
    const uint64_t begin = first->timestamp_ns;
    core.period_ns = last->timestamp_ns - begin + 1'000;
    for (const compare_event& event : core.events) {
      core.offsets_ns.push_back(event.timestamp_ns - begin);
      core.spans = std::max(core.spans, (event.tracking_id & kTrackingMask) + 1);
    }
  }
}

void EventPool::Pace(uint64_t begin_ns, double rate) {
  begin_ns_ = begin_ns;
  for (size_t i = 0; i < cores_.size(); ++i) {
    Core& core = cores_[i];
    const double wanted_ns = 1e9 * static_cast<double>(core.events.size() * cores_.size()) / rate;
    time_scale_[i] = wanted_ns / static_cast<double>(core.period_ns);
    core.paced_at = core.emitted;
  }
}

const compare_event& EventPool::Next(uint32_t index) {
  Core& core = cores_[index];
  const uint64_t at = core.emitted % core.events.size();
  const uint64_t repetition = core.emitted / core.events.size();
  const uint64_t since = repetition - core.paced_at / core.events.size();
  core.current = core.events[at];
  core.current.timestamp_ns =
      begin_ns_ +
      static_cast<uint64_t>(static_cast<double>(since * core.period_ns + core.offsets_ns[at]) *
                            time_scale_[index]);
  core.current.tracking_id += repetition * core.spans;
  core.current.nc_local_id = core.emitted++;
  return core.current;
}

}  // namespace neurontrace
