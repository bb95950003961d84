// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/execution_medians.h"

#include <algorithm>
#include <cassert>

// How it works: starts wait for their stops, which are matched by tracking id. A duration is
// compared with the median of the last ones of its model and then added to them.
namespace neurontrace {
namespace {

// A day. Longer is no execution, but a counter or a clock that was set.
constexpr uint64_t kLongestNs = 86'400'000'000'000;

// Returns the time between two readings; nothing if that cannot be the duration of an execution.
std::optional<uint64_t> Between(uint64_t begin_ns, uint64_t end_ns) {
  if (end_ns < begin_ns || end_ns - begin_ns > kLongestNs) return std::nullopt;
  return end_ns - begin_ns;
}

}  // namespace

const ExecutionMedians::Model* ExecutionMedians::FindModel(uint64_t id) const {
  const auto found = std::find_if(models_.begin(), models_.end(),
                                  [id](const Model& model) { return model.id == id; });
  return found == models_.end() ? nullptr : &*found;
}

RunningMedian& ExecutionMedians::MedianOf(uint64_t id) {
  auto model = std::find_if(models_.begin(), models_.end(),
                            [id](const Model& each) { return each.id == id; });
  if (model == models_.end() && models_.size() < kModelsMax) {
    model = models_.insert(models_.end(), {.id = id});
  } else if (model == models_.end()) {
    // Least recently used.
    model = std::min_element(models_.begin(), models_.end(),
                             [](const Model& a, const Model& b) { return a.used < b.used; });
    *model = {.id = id};
  }
  model->used = ++uses_;
  return model->median;
}

void ExecutionMedians::Begin(const Mark& mark) {
  // A tracking id that is used again means that its stop was lost.
  std::erase_if(open_,
                [&](const Open& open) { return open.begin.tracking_id == mark.tracking_id; });
  if (open_.size() >= limits::kTriggerOpenExecutionsMax) open_.erase(open_.begin());
  open_.push_back({mark});
}

std::optional<ExecutionMedians::Taken> ExecutionMedians::End(const Mark& mark) {
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Open& open) {
    return open.begin.tracking_id == mark.tracking_id;
  });
  if (found == open_.end()) return std::nullopt;
  const Mark begin = found->begin;
  open_.erase(found);
  // A core executes in order, so earlier executions have ended although their stops were not seen.
  std::erase_if(open_, [&](const Open& open) {
    return begin.execution && open.begin.execution && *open.begin.execution < *begin.execution;
  });
  std::optional<uint64_t> ns;
  if (begin.device_ns && mark.device_ns) ns = Between(*begin.device_ns, *mark.device_ns);
  if (!ns) ns = Between(begin.host_ns, mark.host_ns);
  if (!ns) return std::nullopt;
  RunningMedian& median = MedianOf(begin.model);
  // Before the value is added, as an execution must not be compared with itself.
  const std::optional<uint64_t> median_ns = median.Get();
  median.Add(*ns);
  if (!median_ns) return std::nullopt;
  return Taken{begin.execution, *ns, *median_ns};
}

std::optional<ExecutionMedians::Taken> ExecutionMedians::FindUnended(uint64_t now_ns, double times,
                                                                     uint32_t reporter) {
  assert(reporter < limits::kTriggerRulesMax);
  for (Open& open : open_) {
    if (open.told[reporter] || !open.begin.execution) continue;
    const Model* const model = FindModel(open.begin.model);
    const std::optional<uint64_t> median_ns = model == nullptr ? std::nullopt : model->median.Get();
    if (median_ns.value_or(0) == 0) continue;
    const uint64_t ns = now_ns - std::min(now_ns, open.begin.read_ns);
    if (ns < kUnendedMinNs || static_cast<double>(ns) < times * static_cast<double>(*median_ns)) {
      continue;
    }
    open.told[reporter] = true;
    return Taken{open.begin.execution, ns, *median_ns};
  }
  return std::nullopt;
}

}  // namespace neurontrace
