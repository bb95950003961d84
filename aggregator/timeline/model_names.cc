// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/model_names.h"

#include <charconv>

#include "absl/strings/string_view.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

// Accepts numbers that are stored as text, as some versions of the runtime write them.
std::optional<uint64_t> ExecutionOf(const TimelineRecord& record) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, "exec_id", &key);
  if (value == nullptr) return std::nullopt;
  if (key->type == ValueType::kUint) return *value;
  if (key->type != ValueType::kString) return std::nullopt;
  const std::string_view text = record.text(*value);
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ModelAttribute> ModelNames::Of(const TimelineRecord& record) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, "model_name", &key);
  if (value != nullptr && key->type != ValueType::kString) {
    return ModelAttribute{.key = key, .value = *value};
  }
  ModelAttribute model;
  if (value != nullptr) model.name = record.text(*value);
  const std::string_view type = record.start().event_type;
  // kbl_exec_pre precedes the device's events of the same execution in the timeline: a device
  // cannot start what the host has not submitted.
  if (!model.name.empty() && type == "kbl_exec_pre") {
    if (const auto exec_id = ExecutionOf(record)) Record(record.stream, *exec_id, model.name);
  } else if (model.name.empty() && type == "nc_exec_running") {
    if (const auto exec_id = ExecutionOf(record)) model.name = Find(record.stream, *exec_id);
  }
  if (value == nullptr && model.name.empty()) return std::nullopt;
  return model;
}

std::string_view KeptName(std::string_view name) {
  if (name.size() <= kKeptNameBytesMax) return name;
  // A UTF-8 character has at most four bytes, so one of these four places is between two
  // characters. A text that is not UTF-8 is cut at the limit.
  for (size_t end = kKeptNameBytesMax; end > kKeptNameBytesMax - 4; --end) {
    const bool continues = (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80;
    if (!continues) return name.substr(0, end);
  }
  return name.substr(0, kKeptNameBytesMax);
}

void ModelNames::Record(uint32_t stream, uint64_t exec_id, std::string_view model_name) {
  if (model_name.empty()) return;
  model_name = KeptName(model_name);
  uint32_t model = 0;
  const auto known = model_numbers_.find(model_name);
  if (known != model_numbers_.end()) {
    model = known->second;
  } else {
    if (models_.size() >= kModelsMax) return;
    // Behind a pointer, because model_numbers_ and callers keep views into it.
    models_.push_back(std::make_unique<const std::string>(model_name));
    model = static_cast<uint32_t>(models_.size());
    model_numbers_.emplace(*models_.back(), model);
  }
  auto& executions = executions_[stream];
  // A ring by exec_id rather than a map: ids increase, so that a newer execution replaces the one
  // 256 before it, and memory stays constant.
  if (executions.empty()) executions.resize(kExecutionsPerStream);
  executions[exec_id % kExecutionsPerStream] = {exec_id, model};
}

std::string_view ModelNames::Find(uint32_t stream, uint64_t exec_id) const {
  const auto executions = executions_.find(stream);
  if (executions == executions_.end()) return {};
  const Execution& execution = executions->second[exec_id % kExecutionsPerStream];
  if (execution.model == 0 || execution.exec_id != exec_id) return {};
  return *models_[execution.model - 1];
}

}  // namespace neurontrace
