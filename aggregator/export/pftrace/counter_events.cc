// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/counter_events.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "aggregator/export/pftrace/perfetto_fields.h"
#include "aggregator/export/rows/row_names.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/base/clean_text.h"
#include "lib/trace/event.h"
#include "lib/trace/host_samples.h"

namespace neurontrace {
namespace {

using perfetto::EventType;

}  // namespace

// Each number among the arguments of a counter event is a series of its own.
void CounterEvents::Write(const TimelineRecord& record) {
  const std::string name = CounterName(record);
  const auto& keys = record.start().keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].scope != KeyScope::kData) continue;
    const uint64_t value = record.values[i];
    const bool is_exact =
        keys[i].type == ValueType::kInt || (keys[i].type == ValueType::kUint && value <= INT64_MAX);
    double number = 0;
    if (keys[i].type == ValueType::kDouble) {
      number = std::bit_cast<double>(value);
    } else if (keys[i].type == ValueType::kUint) {
      number = static_cast<double>(value);
    } else if (!is_exact) {
      continue;
    }
    const uint32_t track = tracks_.CounterUuid(record, fmt::format("{} {}", name, keys[i].name));
    fields_.Start(EventType::kCounter, track);
    if (is_exact) {
      fields_.CounterValue(static_cast<int64_t>(value));
    } else {
      fields_.CounterValue(number);
    }
    out_.Event(record.start_ns, fields_.bytes());
  }
}

// lib/trace/host_samples.h defines the events.
void CounterEvents::WriteHostSample(const TimelineRecord& record) {
  // The track comes from `uuid_of`, so that it is described only if the sample has the value.
  const auto write = [&](std::string_view key, const auto& uuid_of) {
    const ShapeKey* about = nullptr;
    const uint64_t* value = FindAttribute(record, KeyScope::kData, key, &about);
    if (value == nullptr) return;
    const double number = about->type == ValueType::kDouble ? std::bit_cast<double>(*value)
                                                            : static_cast<double>(*value);
    const bool is_number = about->type == ValueType::kDouble || about->type == ValueType::kUint;
    if (!is_number || !std::isfinite(number)) return;
    fields_.Start(EventType::kCounter, uuid_of());
    fields_.CounterValue(number);
    out_.Event(record.start_ns, fields_.bytes());
  };
  if (record.start().event_type == kHostMemoryEventType) {
    write(kHostUsedBytesKey,
          [&] { return tracks_.HostCounterUuid(record.stream, "memory used", TrackUnit::kBytes); });
    write(kHostUsedPercentKey, [&] {
      return tracks_.HostCounterUuid(record.stream, "memory used, share", TrackUnit::kPercent);
    });
    return;
  }
  if (record.start().event_type != kHostCpuEventType) return;
  const ShapeKey* about = nullptr;
  const uint64_t* id = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  if (id == nullptr || about->type != ValueType::kString) return;
  const std::string cpu = CleanText(record.text(*id), 64);
  write(kHostUtilPercentKey, [&] { return tracks_.HostCpuUuid(record.stream, cpu); });
}

}  // namespace neurontrace
