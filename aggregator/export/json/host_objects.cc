// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/json/host_objects.h"

#include "aggregator/export/json/json_text.h"
#include "aggregator/timeline/framework_names.h"
#include "trace/host_samples.h"

namespace neurontrace {
namespace {

bool IsNumber(const ShapeKey& key) {
  return key.type == ValueType::kUint || key.type == ValueType::kInt ||
         key.type == ValueType::kDouble;
}

// ,"key":number; false where the record has no number of that name.
bool AppendSampleNumber(std::string_view key, const TimelineRecord& record, std::string_view name,
                        std::string& out) {
  const ShapeKey* about = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, name, &about);
  if (value == nullptr || !IsNumber(*about)) return false;
  AppendJsonKey(key, out);
  AppendAttributeValue(*about, *value, record, out);
  return true;
}

// The object's beginning.
void AppendSample(const StreamIdentity& stream, const TimelineRecord& record, uint64_t duration_ns,
                  std::string& out) {
  out += "{\"timestamp\":";
  out += std::to_string(record.start_ns);
  AppendJsonNumber("duration", duration_ns, out);
  AppendJsonText("instance_id", stream.worker.instance_id, out);
}

}  // namespace

bool AppendCpuUtil(const StreamIdentity& stream, const TimelineRecord& record, std::string& out) {
  const size_t before = out.size();
  const ShapeKey* about = nullptr;
  const uint64_t* duration = FindAttribute(record, KeyScope::kData, kHostDurationNsKey, &about);
  const bool has_duration = duration != nullptr && about->type == ValueType::kUint;
  AppendSample(stream, record, has_duration ? *duration : 0, out);
  const uint64_t* cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &about);
  const bool has_cpu = cpu != nullptr;
  if (has_cpu) {
    AppendJsonText("cpu_id", AttributeText(*about, *cpu, record.names->strings), out);
  }
  if (!has_cpu || !AppendSampleNumber("util", record, kHostUtilPercentKey, out)) {
    out.resize(before);
    return false;
  }
  out += '}';
  return true;
}

bool AppendMemoryUsage(const StreamIdentity& stream, const TimelineRecord& record,
                       std::string& out) {
  const size_t before = out.size();
  AppendSample(stream, record, 0, out);
  const bool has_percent = AppendSampleNumber("percent_usage", record, kHostUsedPercentKey, out);
  const bool has_bytes = AppendSampleNumber("usage", record, kHostUsedBytesKey, out);
  if (!has_percent && !has_bytes) {
    out.resize(before);
    return false;
  }
  out += '}';
  return true;
}

}  // namespace neurontrace
