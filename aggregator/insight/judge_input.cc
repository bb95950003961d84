// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/judge_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace neurontrace {

std::string JudgeInput::ModelName(uint32_t model) const {
  if (model == 0) return {};
  const auto found = model_names.find(model);
  if (found != model_names.end()) return found->second;
  return fmt::format("model 0x{:08x}", model);
}

Refusal& RefusalList::Find(RefusalReason reason, std::string_view missing) {
  for (Refusal& refusal : refusals_) {
    if (refusal.reason == reason && refusal.missing == missing) return refusal;
  }
  Refusal& refusal = refusals_.emplace_back();
  refusal.reason = reason;
  refusal.missing = missing;
  return refusal;
}

void RefusalList::Add(RefusalReason reason, uint32_t core, std::string_view missing,
                      Detail detail) {
  Refusal& refusal = Find(reason, missing);
  if (refusal.cores.empty()) {
    refusal.begin_ns = detail.begin_ns;
    refusal.end_ns = detail.end_ns;
  }
  refusal.cores.push_back(core);
  refusal.count += detail.count;
  is_refused_[core] = true;
}

void RefusalList::AddGeneral(RefusalReason reason, std::string_view missing, uint64_t count) {
  Find(reason, missing).count += count;
}

void RefusalList::Withdraw(RefusalReason reason, const std::vector<uint32_t>& cores) {
  for (Refusal& refusal : refusals_) {
    if (refusal.reason != reason) continue;
    std::erase_if(refusal.cores, [&](uint32_t core) {
      return std::binary_search(cores.begin(), cores.end(), core);
    });
  }
  std::erase_if(refusals_, [&](const Refusal& refusal) {
    return refusal.reason == reason && refusal.cores.empty();
  });
}

std::vector<Refusal> RefusalList::Finish() {
  for (Refusal& refusal : refusals_) {
    std::sort(refusal.cores.begin(), refusal.cores.end());
    refusal.cores.erase(std::unique(refusal.cores.begin(), refusal.cores.end()),
                        refusal.cores.end());
  }
  std::stable_sort(refusals_.begin(), refusals_.end(), [](const Refusal& a, const Refusal& b) {
    if (a.cores.size() != b.cores.size()) return a.cores.size() > b.cores.size();
    return a.reason < b.reason;
  });
  return std::move(refusals_);
}

}  // namespace neurontrace
