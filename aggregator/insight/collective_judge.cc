// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/collective_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "aggregator/insight/robust_figures.h"

namespace neurontrace {
namespace {

using insight_rule::kCostMinNs;
using insight_rule::kCostShareMin;
using insight_rule::kSlowTransferRatioMin;
using insight_rule::kTransferBlock;

// An operation of all groups.
using OperationKey = std::tuple<InsightClass, uint32_t, uint32_t>;  // kind, model, op

// One operation of one group, over its members.
struct GroupOperation {
  std::vector<uint32_t> members;
  double sum = 0;  // of the members' least recent lengths
  // The transfer: in each execution the last to arrive waits for nobody, so the least over members
  // and executions has no wait.
  double least_now = INFINITY;
  double least_before = INFINITY;
  double per_step = 0;
  double step_ns = 0;

  double increase() const { return least_now - least_before; }
  // How much longer than the last to arrive the members are in each recent one, on average.
  double wait() const { return sum / static_cast<double>(members.size()) - least_now; }
};
using GroupOperations = std::map<uint64_t, GroupOperation>;  // by group

std::map<uint64_t, size_t> CountMembers(const JudgeInput& input, const Fleet& fleet) {
  std::map<uint64_t, size_t> members;
  for (const uint32_t core : fleet.cores) {
    const CoreHistory& history = *input.histories[core];
    for (uint32_t i = 0; i < history.group_count; ++i) ++members[history.groups[i]];
  }
  return members;
}

std::map<OperationKey, GroupOperations> CollectOperations(const JudgeInput& input,
                                                          const Fleet& fleet) {
  std::map<OperationKey, GroupOperations> result;
  // Refused cores too: without the last to arrive, the wait for it would look like a transfer.
  for (const uint32_t core : fleet.cores) {
    const CoreHistory& history = *input.histories[core];
    for (const CoreOperation& operation : history.operations) {
      if (operation.kind == InsightClass::kHostBarrier) continue;
      GroupOperation& of_group =
          result[{operation.kind, operation.model, operation.op}][history.groups[operation.group]];
      of_group.members.push_back(core);
      of_group.sum += operation.recent_least();
      of_group.least_now = std::min(of_group.least_now, operation.recent_least());
      // A member without a history leaves the group without one.
      of_group.least_before = std::min<double>(of_group.least_before, operation.earlier_least);
    }
  }
  return result;
}

// Steps and frequencies, of the roles' cores.
void AddSteps(const JudgeInput& input, const Fleet& fleet,
              std::map<OperationKey, GroupOperations>& operations) {
  for (const FleetRole& role : fleet.roles) {
    for (const uint32_t core : role.cores) {
      const CoreHistory& history = *input.histories[core];
      for (const CoreOperation& operation : history.operations) {
        const auto key = operations.find({operation.kind, operation.model, operation.op});
        if (key == operations.end()) continue;
        GroupOperation& of_group = key->second[history.groups[operation.group]];
        of_group.per_step = static_cast<double>(operation.total) * role.period /
                            static_cast<double>(std::max<uint64_t>(1, history.executions));
        of_group.step_ns = role.step_ns;
      }
    }
  }
}

// `in_group`: the cores of the group, whether they take part in this operation or not.
bool IsSlow(const GroupOperations& groups, uint64_t group, size_t in_group) {
  const GroupOperation& operation = groups.at(group);
  if (operation.members.size() < 2 || operation.least_before <= 0) return false;
  // Who is not known to take part may be the last to arrive.
  if (operation.members.size() < in_group) return false;
  if (operation.least_now < kSlowTransferRatioMin * operation.least_before) return false;
  std::vector<double> others;
  for (const auto& [other, figures] : groups) {
    if (figures.members.size() > operation.members.size()) return false;
    if (other != group && figures.members.size() >= 2) others.push_back(figures.least_now);
  }
  return others.empty() || operation.least_now >= kSlowTransferRatioMin * MedianOf(others);
}

Verdict Describe(const JudgeInput& input, uint64_t group, const OperationKey& key,
                 const GroupOperation& operation, double increase_per_step) {
  Verdict verdict;
  verdict.kind = VerdictKind::kSlowCollective;
  verdict.phase = InsightPhase::kTransfer;
  verdict.suspects = operation.members;
  std::sort(verdict.suspects.begin(), verdict.suspects.end());
  verdict.ratio = operation.least_now / operation.least_before;
  verdict.cost_ns = static_cast<uint64_t>(increase_per_step);
  verdict.step_ns = static_cast<uint64_t>(operation.step_ns);
  verdict.waiting = static_cast<uint32_t>(operation.members.size());
  verdict.group = group;
  verdict.is_barrier = std::get<0>(key) != InsightClass::kCollective;
  verdict.op_id = verdict.is_barrier ? 0 : std::get<2>(key);
  const CoreHistory& history = *input.histories[verdict.suspects.front()];
  const size_t recent = std::min<size_t>(history.kept(), 2 * kTransferBlock);
  verdict.judged =
      static_cast<uint32_t>(std::min<uint64_t>(history.kept(), history.new_executions()));
  verdict.executions = std::min(verdict.judged, static_cast<uint32_t>(recent));
  if (recent > 0) {
    verdict.since_ns = history.latest(recent - 1).end_ns;
    verdict.until_ns = history.latest(0).end_ns;
    verdict.exec_id = history.latest(0).exec_id;
  }
  verdict.ruled_out.push_back({"late arrival", 0,
                               fmt::format("the members always wait {:.1f} us for each other, the "
                                           "transfer takes {:.1f} us longer",
                                           operation.wait() / 1e3, operation.increase() / 1e3)});
  return verdict;
}

}  // namespace

std::vector<Verdict> JudgeCollectives(const JudgeInput& input, const Fleet& fleet) {
  // All slow operations of a group have one cause.
  struct Worst {
    const GroupOperation* operation = nullptr;
    OperationKey key;
    double increase = 0;
    double sum = 0;  // over its slow operations, per step
  };
  auto operations = CollectOperations(input, fleet);
  AddSteps(input, fleet, operations);
  const std::map<uint64_t, size_t> members = CountMembers(input, fleet);
  std::map<uint64_t, Worst> by_group;
  for (const auto& [key, groups] : operations) {
    for (const auto& [group, operation] : groups) {
      if (!IsSlow(groups, group, members.at(group))) continue;
      Worst& worst = by_group[group];
      const double increase = operation.increase() * operation.per_step;
      worst.sum += increase;
      if (increase <= worst.increase) continue;
      worst.increase = increase;
      worst.operation = &operation;
      worst.key = key;
    }
  }
  std::vector<Verdict> verdicts;
  for (const auto& [group, worst] : by_group) {
    if (worst.operation == nullptr) continue;
    if (worst.sum < kCostMinNs || worst.sum < kCostShareMin * worst.operation->step_ns) continue;
    verdicts.push_back(Describe(input, group, worst.key, *worst.operation, worst.sum));
  }
  return verdicts;
}

}  // namespace neurontrace
