// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/report_merger.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "aggregator/insight/insight_rule.h"
#include "aggregator/insight/verdict_text.h"

namespace neurontrace {
namespace {

// A later window has the same executions, and more, which can be enough.
bool IsProvisional(RefusalReason reason) {
  return reason == RefusalReason::kTooShort || reason == RefusalReason::kRoleUnknown;
}

void AddUnion(const std::vector<uint32_t>& cores, std::vector<uint32_t>& to) {
  std::vector<uint32_t> both;
  std::ranges::set_union(to, cores, std::back_inserter(both));
  to = std::move(both);
}

// Returns the models in which the verdict has new executions, its own first.
std::vector<VerdictModel> NewModels(const Verdict& verdict) {
  std::vector<VerdictModel> models = {{.role = verdict.role,
                                       .ratio = verdict.ratio,
                                       .z = verdict.z,
                                       .executions = verdict.executions,
                                       .judged = verdict.judged,
                                       .since_ns = verdict.since_ns,
                                       .until_ns = verdict.until_ns}};
  std::ranges::copy(verdict.also, std::back_inserter(models));
  std::erase_if(models, [](const VerdictModel& model) { return model.judged == 0; });
  return models;
}

// Adds what a window has of a model to what earlier ones had.
void AddModel(const VerdictModel& model, std::map<std::string, VerdictModel>& to) {
  const auto [known, is_new] = to.try_emplace(model.role, model);
  if (is_new) return;
  VerdictModel& sum = known->second;
  if (model.executions > sum.executions) {
    sum.ratio = model.ratio;
    sum.z = model.z;
  }
  sum.executions += model.executions;
  sum.judged += model.judged;
  sum.since_ns = std::min(sum.since_ns, model.since_ns);
  sum.until_ns = std::max(sum.until_ns, model.until_ns);
}

// Returns the cost of the steps of the window in which the verdict holds.
uint64_t CostIn(const Verdict& verdict, const JudgedWindow& window) {
  const uint64_t begin_ns = std::max(verdict.since_ns, window.begin_ns);
  const uint64_t end_ns = std::min(verdict.until_ns, window.end_ns);
  if (verdict.step_ns == 0 || end_ns <= begin_ns || IsHang(verdict.kind)) return 0;
  double steps = static_cast<double>(end_ns - begin_ns) / static_cast<double>(verdict.step_ns);
  // A step has at least one execution. Where a host's clock was set, the time between is no work.
  if (verdict.judged > 0) steps = std::min(steps, static_cast<double>(verdict.judged));
  return static_cast<uint64_t>(steps * static_cast<double>(verdict.cost_ns));
}

}  // namespace

ReportMerger::ReportMerger(std::span<const InsightCore> cores)
    : cores_(cores), provisional_(cores.size()), was_judged_(cores.size(), false) {
  sums_.cores = static_cast<uint32_t>(cores.size());
  sums_.is_below_cost = true;
}

void ReportMerger::Add(const InsightReport& report, const JudgedWindow& window,
                       const InsightEngine& engine) {
  assert(window.end_ns >= window.begin_ns);
  ++windows_;
  begin_ns_ = std::min(begin_ns_, window.begin_ns);
  end_ns_ = std::max(end_ns_, window.end_ns);
  for (const Verdict& verdict : report.verdicts) AddVerdict(verdict, window);
  EndVerdicts();
  AddRefusals(report, window, engine);
  AddSums(report, sums_);
}

void ReportMerger::AddVerdict(const Verdict& found, const JudgedWindow& window) {
  Verdict verdict = found;
  const bool is_uneven = verdict.suspects.empty();
  const std::vector<VerdictModel> models = NewModels(found);
  // Nothing of it is new: an earlier window has named it.
  if (!is_uneven && !IsHang(verdict.kind) && models.empty()) return;
  if (!models.empty()) {
    // The model with the largest excess may be that of earlier windows only.
    verdict.role = models[0].role;
    verdict.ratio = models[0].ratio;
    verdict.z = models[0].z;
    verdict.executions = models[0].executions;
    verdict.since_ns = models[0].since_ns;
    verdict.until_ns = models[0].until_ns;
    verdict.judged = 0;
    for (const VerdictModel& model : models) {
      verdict.judged += model.judged;
      verdict.since_ns = std::min(verdict.since_ns, model.since_ns);
      verdict.until_ns = std::max(verdict.until_ns, model.until_ns);
    }
  }
  if (verdict.since_ns == 0) verdict.since_ns = window.begin_ns;
  if (verdict.until_ns == 0) verdict.until_ns = window.end_ns;
  const uint64_t total_ns = CostIn(verdict, window);
  std::string key = VerdictKey(verdict, cores_);
  auto known = open_.find(key);
  if (known == open_.end()) {
    if (sums_.verdicts.size() + open_.size() >= kVerdictsMax) {
      ++verdicts_dropped_;
      return;
    }
    known = open_.try_emplace(std::move(key)).first;
    known->second.verdict = verdict;
  }
  Merged& merged = known->second;
  const Verdict before = merged.verdict;
  if (verdict.executions > merged.most_executions) {
    merged.verdict = verdict;
    merged.most_executions = verdict.executions;
  }
  merged.verdict.suspects = before.suspects;
  AddUnion(verdict.suspects, merged.verdict.suspects);
  for (const VerdictModel& model : models) AddModel(model, merged.models);
  merged.verdict.since_ns = std::min(before.since_ns, verdict.since_ns);
  merged.verdict.until_ns = std::max(before.until_ns, verdict.until_ns);
  merged.verdict.total_cost_ns = before.total_cost_ns + total_ns;
  const double weight = std::max(1u, verdict.judged);
  merged.cost_sum += weight * static_cast<double>(verdict.cost_ns);
  merged.step_sum += weight * static_cast<double>(verdict.step_ns);
  merged.weight += weight;
  merged.last_window = windows_;
}

void ReportMerger::EndVerdicts() {
  std::erase_if(open_, [this](const auto& entry) {
    if (entry.second.last_window + kWindowsBridged >= windows_) return false;
    EndVerdict(entry.second);
    return true;
  });
}

void ReportMerger::EndVerdict(const Merged& merged) {
  Verdict& verdict = sums_.verdicts.emplace_back(merged.verdict);
  verdict.cost_ns = static_cast<uint64_t>(merged.cost_sum / merged.weight);
  verdict.step_ns = static_cast<uint64_t>(merged.step_sum / merged.weight);
  verdict.executions = verdict.judged = 0;
  verdict.also.clear();
  for (const auto& [role, model] : merged.models) {
    if (role != verdict.role) {
      verdict.also.push_back(model);
      continue;
    }
    verdict.executions = model.executions;
    verdict.judged = model.judged;
  }
  std::ranges::sort(verdict.also, ComesBeforeModel);
}

void ReportMerger::AddRefusals(const InsightReport& report, const JudgedWindow& window,
                               const InsightEngine& engine) {
  std::vector<bool> is_refused(cores_.size(), false);
  for (const Refusal& refusal : report.refusals) {
    for (const uint32_t core : refusal.cores) is_refused[core] = true;
    if (!IsProvisional(refusal.reason) || refusal.cores.empty()) {
      AddRefusal(refusal, window);
      continue;
    }
    for (const uint32_t core : refusal.cores) {
      AddProvisional(core, refusal, window, engine.executions(core) - engine.new_executions(core));
    }
  }
  for (uint32_t core = 0; core < cores_.size(); ++core) {
    const uint64_t executions = engine.executions(core);
    const uint64_t kept_since =
        executions - std::min<uint64_t>(executions, insight_rule::kExecutionsKept);
    ConfirmProvisional(core, kept_since);
    if (is_refused[core] || report.cores_judged == 0) continue;
    provisional_[core].clear();
    was_judged_[core] = true;
  }
}

void ReportMerger::AddRefusal(const Refusal& refusal, const JudgedWindow& window) {
  RefusalKey key(refusal.reason, refusal.missing, refusal.cores);
  auto known = refused_.find(key);
  if (known == refused_.end() && refused_.size() >= kRefusalsMax) {
    const auto same = std::ranges::find_if(refused_, [&](const auto& entry) {
      return std::get<0>(entry.first) == refusal.reason &&
             std::get<1>(entry.first) == refusal.missing;
    });
    // Texts are a few of this program's, so that some refusal has each of them.
    if (same != refused_.end()) known = same;
  }
  if (known == refused_.end()) {
    known = refused_.try_emplace(std::move(key)).first;
    known->second.refusal = {.reason = refusal.reason,
                             .cores = refusal.cores,
                             .begin_ns = window.begin_ns,
                             .end_ns = window.end_ns,
                             .missing = refusal.missing};
  }
  Refused& refused = known->second;
  AddUnion(refusal.cores, refused.refusal.cores);
  // Counters of limits are those since the start; all others are those of the window.
  const bool is_counter = refusal.reason == RefusalReason::kLimit && refusal.cores.empty();
  refused.refusal.count = is_counter ? std::max(refused.refusal.count, refusal.count)
                                     : refused.refusal.count + refusal.count;
  refused.refusal.begin_ns = std::min(refused.refusal.begin_ns, window.begin_ns);
  refused.refusal.end_ns = std::max(refused.refusal.end_ns, window.end_ns);
  // Joined refusals of other cores can be about the same time.
  const uint64_t begin_ns = std::max(window.begin_ns, refused.last_end_ns);
  if (window.end_ns > begin_ns) refused.refusal.refused_ns += window.end_ns - begin_ns;
  refused.last_end_ns = std::max(refused.last_end_ns, window.end_ns);
}

void ReportMerger::AddProvisional(uint32_t core, const Refusal& refusal, const JudgedWindow& window,
                                  uint64_t first_execution) {
  std::vector<Provisional>& all = provisional_[core];
  const auto known = std::ranges::find_if(all, [&](const Provisional& each) {
    return each.reason == refusal.reason && each.missing == refusal.missing;
  });
  if (known != all.end()) {
    known->window.end_ns = window.end_ns;
    return;
  }
  all.push_back({refusal.reason, refusal.missing, window, first_execution});
}

void ReportMerger::ConfirmProvisional(uint32_t core, uint64_t kept_since) {
  std::erase_if(provisional_[core], [&](const Provisional& each) {
    if (each.first_execution >= kept_since) return false;
    AddRefusal({.reason = each.reason, .cores = {core}, .missing = each.missing}, each.window);
    return true;
  });
}

size_t ReportMerger::kept() const {
  size_t count = sums_.verdicts.size() + open_.size() + refused_.size();
  for (const auto& each : provisional_) count += each.size();
  return count;
}

InsightReport ReportMerger::Finish() {
  for (uint32_t core = 0; core < cores_.size(); ++core) ConfirmProvisional(core, UINT64_MAX);
  for (const auto& [key, merged] : open_) EndVerdict(merged);
  open_.clear();
  std::ranges::stable_sort(sums_.verdicts, ComesBefore);
  if (verdicts_dropped_ > 0) {
    sums_.refusals.push_back({.reason = RefusalReason::kLimit,
                              .count = verdicts_dropped_,
                              .missing = "Verdicts beyond the first 1,024; judge a part of the "
                                         "capture with a time window."});
  }
  // Provisional refusals were confirmed core by core.
  std::vector<Refusal> joined;
  for (auto& [key, refused] : refused_) {
    Refusal& refusal = refused.refusal;
    const auto same = std::ranges::find_if(joined, [&](const Refusal& other) {
      return !refusal.cores.empty() && !other.cores.empty() && other.reason == refusal.reason &&
             other.missing == refusal.missing && other.begin_ns == refusal.begin_ns &&
             other.end_ns == refusal.end_ns && other.refused_ns == refusal.refused_ns;
    });
    if (same == joined.end()) {
      joined.push_back(std::move(refusal));
      continue;
    }
    AddUnion(refusal.cores, same->cores);
    same->count += refusal.count;
  }
  for (Refusal& refusal : joined) {
    refusal.judged_ns = end_ns_ - begin_ns_;
    // The whole capture, or a refusal of no core, which has no time.
    if (refusal.refused_ns < refusal.judged_ns && !refusal.cores.empty()) continue;
    refusal.begin_ns = 0;
    refusal.end_ns = 0;
    refusal.refused_ns = refusal.judged_ns = 0;
  }
  std::ranges::move(joined, std::back_inserter(sums_.refusals));
  std::ranges::stable_sort(sums_.refusals, [](const Refusal& a, const Refusal& b) {
    if (a.cores.size() != b.cores.size()) return a.cores.size() > b.cores.size();
    return a.reason < b.reason;
  });
  sums_.cores_judged = static_cast<uint32_t>(std::ranges::count(was_judged_, true));
  if (!sums_.verdicts.empty()) sums_.is_below_cost = false;
  return std::move(sums_);
}

}  // namespace neurontrace
