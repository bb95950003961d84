// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/capture_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace neurontrace {
namespace {

// Facts whose value names the whole job; the other facts name a part of it or its pods.
constexpr std::array<std::string_view, 4> kJobKeys = {"job", "slurm", "torchelastic", "comm"};

// Returns whether the worker has this fact, with this value.
bool HasFact(const WorkerInfo& worker, const KeyValue& fact) {
  return std::find(worker.job_facts.begin(), worker.job_facts.end(), fact) !=
         worker.job_facts.end();
}

// Returns whether the core's number is selected, whatever its rank.
bool HasCore(const CaptureSpec& spec, const CoreInfo& core) {
  const auto& cores = spec.selection.neuron_cores;
  return cores.empty() || std::find(cores.begin(), cores.end(), core.nc_idx) != cores.end();
}

}  // namespace

// The worker's own key comes first; a fact with the same value is not repeated.
std::vector<std::string_view> JobNamesOf(const WorkerInfo& worker) {
  std::vector<std::string_view> names;
  if (!worker.job.empty()) names.push_back(worker.job);
  for (const KeyValue& fact : worker.job_facts) {
    const bool names_job = std::find(kJobKeys.begin(), kJobKeys.end(), fact.key) != kJobKeys.end();
    if (names_job && !fact.value.empty() && fact.value != worker.job) names.push_back(fact.value);
  }
  return names;
}

// An empty `job` matches workers of no known job only.
bool IsOfJob(std::string_view job, const WorkerInfo& worker) {
  if (worker.job == job) return true;
  const std::vector<std::string_view> names = JobNamesOf(worker);
  return !job.empty() && std::find(names.begin(), names.end(), job) != names.end();
}

// Only the best evidence counts: a core is not selected by a rank that a better source contradicts.
bool SelectsCore(const CaptureSpec& spec, const CoreInfo& core) {
  if (!HasCore(spec, core)) return false;
  if (spec.selection.worker_gids.empty()) return true;
  const RankEvidence* const best = BestEvidence(core.rank_evidence);
  return best != nullptr &&
         std::any_of(spec.selection.worker_gids.begin(), spec.selection.worker_gids.end(),
                     [best](const GidRange& range) { return range.contains(best->worker_gid); });
}

// The order is that of a user's thinking: where, which job, which facts, which cores and ranks. The
// first reason is the one that is reported.
std::string NotSelectedReason(const CaptureSpec& spec, const WorkerInfo& worker) {
  const auto& ids = spec.selection.instance_ids;
  if (!ids.empty() && std::find(ids.begin(), ids.end(), worker.identity.instance_id) == ids.end()) {
    return fmt::format("the capture does not select instance {}", worker.identity.instance_id);
  }
  if (!spec.selection.job.empty() && !IsOfJob(spec.selection.job, worker)) {
    return fmt::format("the capture selects job {}, but this worker has {}", spec.selection.job,
                       worker.job.empty() ? "no known job" : "job " + worker.job);
  }
  for (const KeyValue& fact : spec.selection.job_facts) {
    if (!HasFact(worker, fact)) {
      return fmt::format("the capture selects {} {}, which this worker does not have", fact.key,
                         fact.value);
    }
  }
  if (!spec.filter.include_neuron) return "the capture excludes the runtime's events";
  const auto any_core = [&](auto&& selects) {
    return std::any_of(worker.cores.begin(), worker.cores.end(),
                       [&](const CoreInfo& core) { return selects(spec, core); });
  };
  // A worker whose cores are not known yet may turn out to have the selected ones.
  if (!worker.cores.empty() && !any_core(HasCore)) {
    return "the worker has none of the cores that the capture selects";
  }
  if (!spec.selection.worker_gids.empty() && !any_core(SelectsCore)) {
    return "the capture selects none of the known worker_gids of this worker";
  }
  return "";
}

}  // namespace neurontrace
