// SPDX-License-Identifier: Apache-2.0
#include "tests/fake_nrt/topology.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace neurontrace {
namespace {

constexpr uint32_t kPhysicalCores = 128;

std::optional<uint32_t> Number(std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

// Reads "0", "4-7" or "0,2,4-5" into the lowest core, the highest one and the count.
bool ReadCoreList(std::string_view list, uint32_t& first, uint32_t& last, uint32_t& count) {
  count = 0;
  while (true) {
    const size_t comma = list.find(',');
    const std::string_view item = list.substr(0, comma);
    const size_t dash = item.find('-');
    const auto low = Number(item.substr(0, dash));
    const auto high = dash == std::string_view::npos ? low : Number(item.substr(dash + 1));
    if (!low || !high || *high < *low || *high >= kPhysicalCores) return false;
    if (count > 0 && *low <= last) return false;
    if (count == 0) first = *low;
    last = *high;
    count += *high - *low + 1;
    if (comma == std::string_view::npos) return true;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<Topology> Topology::FromEnvironment() {
  Topology topology;
  std::string_view size = Variable("NEURON_RT_VIRTUAL_CORE_SIZE");
  if (size.empty()) size = Variable("NEURON_LOGICAL_NC_CONFIG");
  if (!size.empty()) {
    const auto value = Number(size);
    if (!value || *value < 1 || *value > 2) return std::nullopt;
    topology.physical_per_logical = *value;
  }
  topology.total = kPhysicalCores / topology.physical_per_logical;
  topology.visible = topology.total;
  const std::string_view visible = Variable("NEURON_RT_VISIBLE_CORES");
  const std::string_view count = Variable("NEURON_RT_NUM_CORES");
  if (!visible.empty()) {
    uint32_t last = 0;
    if (!ReadCoreList(visible, topology.first, last, topology.visible)) return std::nullopt;
    if (last >= topology.total) return std::nullopt;
  } else if (!count.empty()) {
    const auto value = Number(count);
    if (!value) return std::nullopt;
    if (*value != 0) topology.visible = *value;
  }
  if (topology.first + topology.visible > topology.total) return std::nullopt;
  return topology;
}

}  // namespace neurontrace
