// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/model_names.h"

#include "absl/strings/string_view.h"

namespace neurontrace {

void ModelNames::Note(uint32_t stream, uint64_t exec_id, std::string_view model_name) {
  if (model_name.empty()) return;
  uint32_t model = 0;
  const auto known = model_numbers_.find(absl::string_view(model_name.data(), model_name.size()));
  if (known != model_numbers_.end()) {
    model = known->second;
  } else {
    if (models_.size() >= kModelsMax) return;
    models_.push_back(std::make_unique<const std::string>(model_name));
    model = static_cast<uint32_t>(models_.size());
    model_numbers_.emplace(model_name, model);
  }
  auto& executions = executions_[stream];
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
