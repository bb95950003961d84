// SPDX-License-Identifier: Apache-2.0
#include "tests/export/random_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace neurontrace {
namespace {

constexpr uint64_t kReachInNs = 2'000'000'000;  // docs/formats/derived.md, "Windows"

struct TypeFilter {
  std::vector<std::string> items;
  std::function<bool(const std::string&)> selects;
};

bool IsHardware(const std::string& type) {
  return type == "nc_exec_running" || type == "cc_running" || type == "timestamp_sync_point";
}

std::vector<TypeFilter> TypeFilters() {
  return {
      {{}, [](const std::string&) { return true; }},
      {{"nrt_execute"}, [](const std::string& type) { return type == "nrt_execute"; }},
      {{"^cc_running"}, [](const std::string& type) { return type != "cc_running"; }},
      {{"nrt_*", "kernel", "host_cpu"},
       [](const std::string& type) {
         return type.starts_with("nrt_") || type == "kernel" || type == "host_cpu";
       }},
      {{"hardware", "^cc_running"},
       [](const std::string& type) { return IsHardware(type) && type != "cc_running"; }},
      {{"software"}, [](const std::string& type) { return !IsHardware(type); }},
  };
}

bool IsFramework(const SeenEvent& event) { return !event.category.empty(); }

}  // namespace

RandomPart RandomPart::Make(uint64_t seed, const HostileCapture::Shape& shape) {
  std::mt19937_64 random(seed);
  const auto below = [&random](uint64_t end) { return random() % end; };
  RandomPart part;
  TimelineFilter& filter = part.filter;
  const std::vector<TypeFilter> types = TypeFilters();
  const TypeFilter& type = types[below(2) * below(types.size())];
  filter.event_types = *EventFilter::Parse(type.items);
  part.selects_type_ = type.selects;
  part.words = fmt::format("types {}", type.items);
  switch (below(8)) {
    case 0:
      filter.instance_ids = {"i-0"};
      break;
    case 1:
      filter.instance_ids = {"nobody", "i-1"};
      break;
    case 2:
      filter.neuron_cores = {0, 3};
      break;
    case 3:
      filter.worker_gids = {{1, 2}, {4, 9}};
      break;
    case 4:
      filter.stream_kinds = {StreamKind::kFramework};
      part.has_cores_ = false;
      break;
    case 5:
      filter.stream_kinds = {StreamKind::kNeuronCore};
      part.has_frameworks_ = false;
      break;
    default:
      break;
  }
  part.words +=
      fmt::format(", instances {}, cores {}, {} ranges of gids, {} kinds", filter.instance_ids,
                  filter.neuron_cores, filter.worker_gids.size(), filter.stream_kinds.size());
  part.has_window = below(4) != 0;
  if (part.has_window) {
    filter.window_start_ns = HostileCapture::kBase + below(shape.length_ns);
    filter.window_end_ns = filter.window_start_ns + 1 + below(shape.length_ns / 2);
    // Whole places of the grid, where times are equal to the window's edges.
    filter.window_start_ns -= (filter.window_start_ns - HostileCapture::kBase) % shape.grid_ns;
    part.words += fmt::format(", window [{}, {})", filter.window_start_ns, filter.window_end_ns);
  }
  return part;
}

bool RandomPart::SelectsPlace(const std::string& instance_id, const std::string& nc_idx) const {
  const auto& instances = filter.instance_ids;
  if (!instances.empty() &&
      std::find(instances.begin(), instances.end(), instance_id) == instances.end()) {
    return false;
  }
  // The worker_gid of a hostile capture's core is its number.
  if (!filter.neuron_cores.empty()) return nc_idx == "0" || nc_idx == "3";
  if (!filter.worker_gids.empty()) return nc_idx == "1" || nc_idx == "2" || nc_idx == "4";
  return true;
}

bool RandomPart::Selects(const SeenEvent& event) const {
  if (!(IsFramework(event) ? has_frameworks_ : has_cores_)) return false;
  if (!SelectsPlace(event.instance_id, event.nc_idx)) return false;
  if (!selects_type_(IsFramework(event) ? event.category : event.name)) return false;
  const bool is_point = event.start_ns == event.end_ns;
  return event.start_ns < filter.window_end_ns &&
         (event.end_ns > filter.window_start_ns ||
          (is_point && event.end_ns == filter.window_start_ns));
}

bool RandomPart::Selects(const SeenSample& sample) const {
  if (!SelectsPlace(sample.instance_id, "")) return false;
  if (!has_cores_ || !has_frameworks_) return false;  // one kind was asked for, and it is no host
  if (!selects_type_(sample.series == "memory" ? "host_memory" : "host_cpu")) return false;
  return sample.at_ns >= filter.window_start_ns && sample.at_ns < filter.window_end_ns;
}

bool RandomPart::CanLack(const SeenEvent& event) const {
  return has_window && event.start_ns + kReachInNs < filter.window_start_ns;
}

}  // namespace neurontrace
