// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/counter_values.h"

#include <bit>

#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/export/rows/row_names.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/trace/host_samples.h"

namespace neurontrace {
namespace {

double CounterNumber(const ShapeKey& key, uint64_t value) {
  switch (key.type) {
    case ValueType::kInt:
      return static_cast<double>(static_cast<int64_t>(value));
    case ValueType::kDouble:
      return std::bit_cast<double>(value);
    default:
      return static_cast<double>(value);
  }
}

std::string HostCounterName(const TimelineRecord& record) {
  const ShapeKey* about = nullptr;
  // Samples of processors carry their number; those of memory have none.
  const uint64_t* const cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  std::string name(record.start().event_type);
  if (cpu != nullptr) name += " " + AttributeText(*about, *cpu, record.names->strings);
  return name;
}

}  // namespace

std::vector<CounterValue> CounterValuesOf(const TimelineRecord& record, bool is_host) {
  const std::string name = is_host ? HostCounterName(record) : CounterName(record);
  std::vector<CounterValue> values;
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!IsCounterValue(keys[i]) || (is_host && keys[i].name == kHostDurationNsKey)) continue;
    values.push_back({name, std::string(keys[i].name), CounterNumber(keys[i], record.values[i])});
  }
  return values;
}

}  // namespace neurontrace
