// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/fleet_finder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/insight/robust_figures.h"

namespace neurontrace {
namespace {

using insight_rule::kContradictionMinNs;
using insight_rule::kContradictionShareMin;
using insight_rule::kContradictionStepShare;
using insight_rule::kCoverageMin;
using insight_rule::kExecutionsMin;
using insight_rule::kPeriodAgreementMin;
using insight_rule::kPeriodMax;

// Disjoint sets of cores: union by the smaller core, with path halving.
class CoreSets {
 public:
  explicit CoreSets(size_t cores) : parent_(cores) { std::iota(parent_.begin(), parent_.end(), 0); }

  uint32_t Find(uint32_t core) {
    while (parent_[core] != core) core = parent_[core] = parent_[parent_[core]];
    return core;
  }
  void Join(uint32_t a, uint32_t b) {
    a = Find(a);
    b = Find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<uint32_t> parent_;
};

std::vector<Fleet> JoinMeetingCores(const JudgeInput& input) {
  CoreSets sets(input.cores.size());
  absl::flat_hash_map<std::pair<std::string_view, uint64_t>, uint32_t> first_of_group;
  for (uint32_t core = 0; core < input.cores.size(); ++core) {
    const CoreHistory& history = *input.histories[core];
    for (uint32_t i = 0; i < history.group_count; ++i) {
      const auto [found, is_new] =
          first_of_group.try_emplace({input.cores[core].job, history.groups[i]}, core);
      if (!is_new) sets.Join(found->second, core);
    }
  }
  std::vector<Fleet> fleets;
  std::vector<uint32_t> fleet_of(input.cores.size());
  for (uint32_t core = 0; core < input.cores.size(); ++core) {
    const uint32_t root = sets.Find(core);
    if (root == core) {
      fleet_of[core] = static_cast<uint32_t>(fleets.size());
      fleets.emplace_back();
    }
    fleets[fleet_of[root]].cores.push_back(core);
  }
  return fleets;
}

void RefuseUncoveredJobs(const JudgeInput& input, RefusalList& refusals) {
  struct Size {
    uint64_t present = 0;
    uint32_t world = 0;
  };
  absl::flat_hash_map<std::string_view, Size> jobs;
  for (const InsightCore& core : input.cores) {
    Size& size = jobs[core.job];
    ++size.present;
    size.world = std::max(size.world, core.world_size);
  }
  for (uint32_t core = 0; core < input.cores.size(); ++core) {
    const Size& size = jobs[input.cores[core].job];
    if (static_cast<double>(size.present) >= kCoverageMin * size.world) continue;
    refusals.Add(RefusalReason::kCoverage, core,
                 "Less than 90 % of the job's ranks are in the capture; record all its workers.");
  }
}

void RefuseByItself(const JudgeInput& input, uint32_t core, RefusalList& refusals) {
  const CoreHistory& history = *input.histories[core];
  const CoreCondition& condition = input.conditions[core];
  const auto executions = history.in_window();
  const uint64_t counted = history.new_executions();
  const double share = kContradictionShareMin * static_cast<double>(counted);
  if (condition.lost_events > 0 || condition.lost_unknown) {
    refusals.Add(RefusalReason::kLosses, core,
                 "Events were lost; judge a window without the loss, or reduce the recorded event "
                 "types.",
                 {condition.loss_begin_ns, condition.loss_end_ns, condition.lost_events});
  } else if (condition.is_silent) {
    // Its last executions are older than those of the others, and are no evidence of now.
    refusals.Add(RefusalReason::kNoCanary, core, kSilentText);
  } else if (executions < kExecutionsMin) {
    refusals.Add(RefusalReason::kTooShort, core,
                 "Fewer than 4 executions in the window; record for longer.", {0, 0, executions});
  } else if (counted > 0 && static_cast<double>(history.without_id) >= share) {
    refusals.Add(RefusalReason::kRoleUnknown, core,
                 "Executions have no exec_id; record nc_exec_running or kbl_exec_pre.");
  } else if (counted > 0 && static_cast<double>(history.id_disorder) >= share) {
    refusals.Add(RefusalReason::kContradiction, core,
                 "exec_id does not increase with time; the runtime's ids cannot be used.");
  }
}

// What cores with the same role have in common.
struct RoleKey {
  uint32_t period = 0;
  bool has_models = true;
  std::vector<uint32_t> sequence;  // one period, in its least rotation

  auto operator<=>(const RoleKey&) const = default;
};

RoleKey KeyOf(const CoreHistory& history) {
  RoleKey key;
  std::vector<uint32_t> sequence(history.kept());
  for (size_t i = 0; i < sequence.size(); ++i) {
    const CoreExecution& execution = history.latest(sequence.size() - 1 - i);
    sequence[i] = execution.key();
    if (execution.model == 0) key.has_models = false;
  }
  key.period = FindPeriod(sequence);
  if (key.period == 0) return key;
  if (key.period == 1) {
    // Long runs of one model: the most frequent one, so that a core that is one execution ahead at
    // a change of the model keeps its role.
    std::map<uint32_t, uint32_t> counts;
    for (const uint32_t model : sequence) ++counts[model];
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](auto& a, auto& b) { return a.second < b.second; });
    key.sequence = {most->first};
    return key;
  }
  const std::vector<uint32_t> last(sequence.end() - key.period, sequence.end());
  key.sequence = last;
  std::vector<uint32_t> rotated = last;
  for (uint32_t i = 1; i < key.period; ++i) {
    std::rotate(rotated.begin(), rotated.begin() + 1, rotated.end());
    key.sequence = std::min(key.sequence, rotated);
  }
  return key;
}

double StepOf(const CoreHistory& history, uint32_t period) {
  std::vector<double> lengths;
  for (size_t i = 0; i < history.in_window(); ++i) {
    double step = 0;
    for (size_t j = i; j < i + period && j < history.kept(); ++j)
      step += history.latest(j).length();
    if (i + period <= history.kept()) lengths.push_back(step);
  }
  return MedianOf(lengths);
}

std::vector<FleetRole> FindRoles(const JudgeInput& input, const Fleet& fleet,
                                 RefusalList& refusals) {
  std::map<RoleKey, FleetRole> roles;
  for (const uint32_t core : fleet.cores) {
    if (refusals.IsRefused(core)) continue;
    RoleKey key = KeyOf(*input.histories[core]);
    if (key.period == 0) {
      refusals.Add(RefusalReason::kRoleUnknown, core,
                   "The executions follow no repeating sequence of up to 64; record more steps.");
      continue;
    }
    FleetRole& role = roles[key];
    role.period = key.period;
    role.has_models = key.has_models;
    role.cores.push_back(core);
  }
  std::vector<FleetRole> result;
  for (auto& [key, role] : roles) {
    std::vector<double> steps;
    for (const uint32_t core : role.cores) {
      const CoreHistory& history = *input.histories[core];
      steps.push_back(StepOf(history, role.period));
      for (size_t i = 0; i < history.in_window(); ++i) {
        const uint32_t model = history.latest(i).key();
        const auto at = std::lower_bound(role.models.begin(), role.models.end(), model);
        if (at == role.models.end() || *at != model) role.models.insert(at, model);
      }
    }
    role.step_ns = MedianOf(steps);
    result.push_back(std::move(role));
  }
  std::sort(result.begin(), result.end(), [](const FleetRole& a, const FleetRole& b) {
    return a.cores.front() < b.cores.front();
  });
  return result;
}

// The end of an execution of one row, relative to a time that it has in common with others.
struct ExecutionEnd {
  uint64_t exec_id;
  uint32_t row;
  double end;
};

// Counts, by row, where the end of an execution differs from the median of the ends with its
// exec_id by more than `tolerance`. Reorders the ends.
void CountDisagreements(double tolerance, std::vector<ExecutionEnd>& ends,
                        std::vector<uint32_t>& disagreements) {
  std::ranges::sort(ends, {}, &ExecutionEnd::exec_id);
  std::vector<double> values;
  for (size_t begin = 0, end = 0; begin < ends.size(); begin = end) {
    values.clear();
    for (; end < ends.size() && ends[end].exec_id == ends[begin].exec_id; ++end)
      values.push_back(ends[end].end);
    if (values.size() < 2) continue;
    const double median = MedianOf(values);
    for (size_t i = begin; i < end; ++i) {
      if (std::abs(ends[i].end - median) > tolerance) ++disagreements[ends[i].row];
    }
  }
}

// Cores that meet leave together. One instance has one clock, so its cores' executions with one id
// end at about the same time. Lengths of executions are no evidence: those of a slow core are
// longer, where its peers wait for it in a later one.
void RefuseContradictions(const JudgeInput& input, FleetRole& role, RefusalList& refusals) {
  const double tolerance = std::max(kContradictionMinNs, kContradictionStepShare * role.step_ns);
  std::map<std::string_view, std::vector<uint32_t>> rows_of;  // by instance
  for (uint32_t row = 0; row < role.cores.size(); ++row)
    rows_of[input.cores[role.cores[row]].instance_id].push_back(row);
  std::vector<uint32_t> by_end(role.cores.size(), 0);
  std::vector<ExecutionEnd> ends;
  for (const auto& [instance, rows] : rows_of) {
    // Differences to a first time of the instance, because a double has 53 bits only.
    const uint64_t origin = input.histories[role.cores[rows.front()]]->latest(0).end_ns;
    ends.clear();
    for (const uint32_t row : rows) {
      const CoreHistory& history = *input.histories[role.cores[row]];
      for (size_t i = 0; i < history.in_window(); ++i) {
        const CoreExecution& execution = history.latest(i);
        ends.push_back({execution.exec_id, row,
                        static_cast<double>(static_cast<int64_t>(execution.end_ns - origin))});
      }
    }
    CountDisagreements(tolerance, ends, by_end);
  }
  std::vector<uint32_t> kept;
  for (uint32_t row = 0; row < role.cores.size(); ++row) {
    const uint32_t core = role.cores[row];
    const auto executions = input.histories[core]->in_window();
    const uint32_t disagreements = by_end[row];
    if (disagreements < kContradictionShareMin * static_cast<double>(executions)) {
      kept.push_back(core);
      continue;
    }
    refusals.Add(
        RefusalReason::kContradiction, core,
        "Executions with one exec_id did not end together; the runtime's ids cannot be used.",
        {0, 0, disagreements});
  }
  role.cores = std::move(kept);
}

}  // namespace

uint32_t FindPeriod(std::span<const uint32_t> sequence) {
  const auto agreement = [&](size_t period) {
    size_t equal = 0;
    for (size_t i = period; i < sequence.size(); ++i) equal += sequence[i] == sequence[i - period];
    return static_cast<double>(equal) / static_cast<double>(sequence.size() - period);
  };
  const size_t longest = std::min<size_t>(kPeriodMax, sequence.size() / 2);
  uint32_t close = 0;
  for (uint32_t period = 1; period <= longest; ++period) {
    const double share = agreement(period);
    if (share == 1) return period;
    if (close == 0 && share >= kPeriodAgreementMin) close = period;
  }
  return close;
}

std::vector<Fleet> FindFleets(const JudgeInput& input, RefusalList& refusals) {
  RefuseUncoveredJobs(input, refusals);
  for (uint32_t core = 0; core < input.cores.size(); ++core) {
    if (!refusals.IsRefused(core)) RefuseByItself(input, core, refusals);
  }
  std::vector<Fleet> fleets = JoinMeetingCores(input);
  for (Fleet& fleet : fleets) {
    fleet.roles = FindRoles(input, fleet, refusals);
    for (FleetRole& role : fleet.roles) RefuseContradictions(input, role, refusals);
    std::erase_if(fleet.roles, [](const FleetRole& role) { return role.cores.empty(); });
  }
  return fleets;
}

}  // namespace neurontrace
