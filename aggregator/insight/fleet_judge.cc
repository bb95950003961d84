// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/fleet_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "aggregator/insight/robust_figures.h"

namespace neurontrace {
namespace {

using insight_rule::kTwoCandidatesShare;
using insight_rule::kUnevenDataSpreadMin;
using insight_rule::kUnevenRoleRatioMin;
using insight_rule::kUnevenRoleWaitShareMin;
using insight_rule::kWindows;

// So many of the waiting cores are asked in which collective they wait.
constexpr size_t kWaitersAskedMax = 64;

constexpr bool IsHostPhase(InsightPhase phase) { return phase != InsightPhase::kDevice; }

// A process of an instance, or with process 0 the whole instance.
using Owner = std::pair<std::string_view, uint64_t>;

}  // namespace

const SlowCore& FleetJudge::Suspects::slowest() const {
  return *std::max_element(cores.begin(), cores.end(), [](const SlowCore& a, const SlowCore& b) {
    return a.excess_ns < b.excess_ns;
  });
}

FleetJudge::FleetJudge(const JudgeInput& input, const Fleet& fleet, RefusalList& refusals)
    : input_(input), fleet_(fleet), refusals_(refusals) {
  roles_.reserve(fleet.roles.size());
  for (const FleetRole& role : fleet.roles) roles_.emplace_back(input, role);
}

void FleetJudge::Judge(InsightReport& report) {
  FindUnevenRoles(report);
  std::vector<SlowCore> candidates;
  bool all_are_judged = true;
  for (size_t role = 0; role < roles_.size(); ++role) {
    if (!CanJudge(roles_[role])) {
      all_are_judged = false;
      continue;
    }
    if (!roles_[role].costs_enough()) continue;
    const std::vector<SlowCore> found = FindCandidates(role);
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  // An instance or a process can have cores of several roles.
  std::vector<Suspects> suspects = JoinCandidates(candidates);
  RefuseIndistinct(suspects);
  for (const Suspects& named : suspects) report.verdicts.push_back(Describe(named));
  for (const uint32_t core : fleet_.cores) all_are_judged &= !refusals_.IsRefused(core);
  if (all_are_judged && suspects.empty()) FindUnevenData(report);
  AddSums(report);
}

bool FleetJudge::CanJudge(const RoleJudge& role) {
  if (!role.has_executions()) {
    for (const uint32_t core : role.role().cores) {
      refusals_.Add(
          RefusalReason::kTooShort, core,
          "Fewer than 4 executions are common to the cores of a role; record for longer.");
    }
    return false;
  }
  if (role.has_peers()) return true;
  // Their waits cannot exceed the time in collectives.
  if (!role.IsWorthNaming(role.MetShare() * role.step_ns())) return true;
  for (const uint32_t core : role.role().cores) {
    refusals_.Add(RefusalReason::kFewPeers, core,
                  role.role().has_models
                      ? "Fewer than 3 other cores run the same sequence of models; record more "
                        "workers of the job."
                      : "Models have no names, and fewer than 8 other cores run the same sequence; "
                        "record more workers or the model's name.");
  }
  return false;
}

std::vector<SlowCore> FleetJudge::FindCandidates(size_t role) {
  bool too_many = false;
  std::vector<SlowCore> candidates =
      roles_[role].has_peers() ? roles_[role].FindSlowCores(too_many) : std::vector<SlowCore>();
  if (too_many) {
    for (const SlowCore& slow : candidates) {
      refusals_.Add(RefusalReason::kFewPeers, slow.core,
                    "Half of a role's cores differ from the other half, or fewer than 3 do not; "
                    "record more workers of the job.");
    }
    return {};
  }
  for (SlowCore& slow : candidates) slow.role = role;
  RefuseUnexplained(roles_[role], candidates);
  return candidates;
}

std::vector<FleetJudge::Suspects> FleetJudge::JoinCandidates(
    const std::vector<SlowCore>& candidates) const {
  std::vector<Suspects> result;
  std::vector<SlowCore> alone = candidates;
  for (const bool is_instance : {true, false}) {
    const auto owner_of = [&](uint32_t core) {
      return Owner(input_.cores[core].instance_id, is_instance ? 0 : input_.cores[core].process);
    };
    std::map<Owner, size_t> judged;
    for (const uint32_t core : fleet_.cores) {
      if (!refusals_.IsRefused(core)) ++judged[owner_of(core)];
    }
    std::map<Owner, std::vector<SlowCore>> slow;
    for (const SlowCore& candidate : alone) slow[owner_of(candidate.core)].push_back(candidate);
    for (const auto& [owner, cores] : slow) {
      if (cores.size() < 2 || cores.size() * 2 <= judged[owner]) continue;
      result.push_back({.kind = KindOf(cores, is_instance), .cores = cores});
    }
    std::erase_if(alone, [&](const SlowCore& candidate) {
      const auto& cores = slow[owner_of(candidate.core)];
      return cores.size() >= 2 && cores.size() * 2 > judged[owner_of(candidate.core)];
    });
  }
  for (const SlowCore& candidate : alone)
    result.push_back({.kind = KindOf({candidate}, false), .cores = {candidate}});
  for (Suspects& suspects : result) {
    std::sort(suspects.cores.begin(), suspects.cores.end(),
              [](const SlowCore& a, const SlowCore& b) { return a.core < b.core; });
    suspects.excess_ns = suspects.slowest().excess_ns;
  }
  return result;
}

// The table of decision 0044. `is_instance`: the cores are most of an instance's.
VerdictKind FleetJudge::KindOf(const std::vector<SlowCore>& cores, bool is_instance) const {
  const SlowCore& slowest = *std::max_element(
      cores.begin(), cores.end(),
      [](const SlowCore& a, const SlowCore& b) { return a.excess_ns < b.excess_ns; });
  if (slowest.phase == InsightPhase::kGap && slowest.fill == GapFill::kTensorIo)
    return VerdictKind::kInputStall;
  if (slowest.phase == InsightPhase::kGap && slowest.fill == GapFill::kMemory)
    return VerdictKind::kMemoryStall;
  if (cores.size() > 1) return is_instance ? VerdictKind::kSlowHost : VerdictKind::kSlowProcess;
  if (slowest.phase == InsightPhase::kDevice) return VerdictKind::kSlowCore;
  return slowest.phase == InsightPhase::kGap ? VerdictKind::kHostCode : VerdictKind::kSlowProcess;
}

// The frontier must add up, or nobody of the role is named.
void FleetJudge::RefuseUnexplained(const RoleJudge& role, std::vector<SlowCore>& candidates) {
  std::vector<uint32_t> rows;
  uint32_t window = kWindows.front();
  for (const SlowCore& slow : candidates) {
    rows.push_back(slow.row);
    window = std::min(window, slow.window);
  }
  const Frontier frontier = role.FindFrontier(rows, window);
  const bool is_explained =
      candidates.empty() ? !role.IsWorthNaming(frontier.unexplained_ns) : frontier.AddsUp();
  if (is_explained) {
    if (!candidates.empty()) explained_ns_ = std::max(explained_ns_, frontier.explained_ns);
    return;
  }
  const std::string missing =
      "The own work of the candidates explains less than 80 % of the wait; record the events of "
      "collectives, barriers and executions of all workers.";
  refusals_.Add(RefusalReason::kUnexplained, frontier.leader, missing);
  for (const SlowCore& slow : candidates)
    refusals_.Add(RefusalReason::kUnexplained, slow.core, missing);
  candidates.clear();
}

// A victim whose wait is not recorded as one has the same excess as its cause.
void FleetJudge::RefuseIndistinct(std::vector<Suspects>& suspects) {
  std::vector<bool> is_indistinct(suspects.size(), false);
  for (size_t a = 0; a < suspects.size(); ++a) {
    for (size_t b = a + 1; b < suspects.size(); ++b) {
      const auto [less, more] = std::minmax(suspects[a].excess_ns, suspects[b].excess_ns);
      if (less < (1 - kTwoCandidatesShare) * more) continue;
      is_indistinct[a] = true;
      is_indistinct[b] = true;
    }
  }
  std::vector<Suspects> kept;
  for (size_t i = 0; i < suspects.size(); ++i) {
    if (!is_indistinct[i]) {
      kept.push_back(std::move(suspects[i]));
      continue;
    }
    for (const SlowCore& slow : suspects[i].cores) {
      refusals_.Add(RefusalReason::kTwoCandidates, slow.core,
                    "These excesses are within 20 % of each other, and one of them may be a wait "
                    "that was not recorded; record all event types of these cores.");
    }
  }
  suspects = std::move(kept);
}

Verdict FleetJudge::Describe(const Suspects& suspects) const {
  const SlowCore& slowest = suspects.slowest();
  const RoleJudge& role = roles_[slowest.role];
  const SlowCore& first = suspects.cores.front();
  const PeerTable& table = role.table(slowest.table);
  Verdict verdict;
  verdict.kind = suspects.kind;
  std::vector<uint32_t> rows;
  for (const SlowCore& slow : suspects.cores) {
    verdict.suspects.push_back(slow.core);
    if (slow.role == slowest.role) rows.push_back(slow.row);
  }
  verdict.phase = slowest.phase;
  verdict.role = role.Name(slowest.table);
  verdict.peers = static_cast<uint32_t>(role.role().cores.size() - rows.size());
  verdict.ratio = slowest.ratio;
  verdict.z = slowest.z;
  verdict.executions = slowest.held;
  verdict.judged = slowest.judged;
  verdict.since_ns = first.since_ns;
  verdict.until_ns = first.until_ns;
  verdict.cost_ns = static_cast<uint64_t>(suspects.excess_ns);
  verdict.step_ns = static_cast<uint64_t>(role.step_ns());
  verdict.waiting = role.CountWaiting(slowest, rows);
  verdict.exec_id = slowest.exec_id;
  verdict.also = OtherModels(slowest);
  FindCollective(role, verdict);

  const bool is_host = IsHostPhase(slowest.phase);
  const Quantity other = is_host ? Quantity::kDevice : Quantity::kHost;
  verdict.ruled_out.push_back(
      {is_host ? "device" : "host", table.RatioOf(other, slowest.row, slowest.window), {}});
  verdict.ruled_out.push_back(
      {"peers", 0, fmt::format("their medians differ by {:.1f} %", slowest.spread * 100)});
  verdict.ruled_out.push_back(
      {"clock", 0, "only durations on one host are compared, not times of different hosts"});
  return verdict;
}

std::vector<VerdictModel> FleetJudge::OtherModels(const SlowCore& slow) const {
  std::vector<VerdictModel> models;
  for (const SlowCore& other : slow.also) {
    models.push_back({.role = roles_[slow.role].Name(other.table),
                      .ratio = other.ratio,
                      .z = other.z,
                      .executions = other.held,
                      .judged = other.judged,
                      .since_ns = other.since_ns,
                      .until_ns = other.until_ns});
  }
  std::ranges::sort(models, ComesBeforeModel);
  return models;
}

// The operation in which the other cores of the role wait the longest.
void FleetJudge::FindCollective(const RoleJudge& role, Verdict& verdict) const {
  struct Waits {
    double sum = 0;
    double count = 0;
    double least = INFINITY;  // of all cores: the suspects wait least
    uint32_t op = 0;
  };
  using Key = std::tuple<InsightClass, uint64_t, uint32_t, uint32_t>;
  std::map<Key, Waits> operations;
  size_t asked = 0;
  const auto add = [&](uint32_t core, bool is_waiting) {
    const CoreHistory& history = *input_.histories[core];
    for (const CoreOperation& operation : history.operations) {
      Waits& waits = operations[{operation.kind, history.groups[operation.group], operation.op,
                                 operation.model}];
      const double mean = operation.mean;
      waits.op = operation.op;
      waits.least = std::min(waits.least, mean);
      if (!is_waiting) continue;
      waits.sum += mean;
      ++waits.count;
    }
  };
  for (const uint32_t core : verdict.suspects) add(core, false);
  for (const uint32_t core : role.role().cores) {
    if (std::binary_search(verdict.suspects.begin(), verdict.suspects.end(), core)) continue;
    if (asked++ == kWaitersAskedMax) break;
    add(core, true);
  }
  double longest = 0;
  for (const auto& [key, waits] : operations) {
    if (waits.count == 0) continue;
    const double wait = waits.sum / waits.count - waits.least;
    if (wait <= longest) continue;
    longest = wait;
    verdict.group = std::get<1>(key);
    verdict.is_barrier = std::get<0>(key) != InsightClass::kCollective;
    verdict.op_id = verdict.is_barrier ? 0 : waits.op;
  }
}

void FleetJudge::FindUnevenRoles(InsightReport& report) const {
  if (roles_.size() < 2) return;
  struct RoleFigures {
    std::vector<double> own;
    double own_median = 0;
    double met_median = 0;
  };
  std::vector<RoleFigures> figures(roles_.size());
  for (size_t role = 0; role < roles_.size(); ++role) {
    std::vector<double> met;
    for (size_t row = 0; row < roles_[role].role().cores.size(); ++row) {
      figures[role].own.push_back(roles_[role].OwnPerStep(row));
      met.push_back(roles_[role].MetPerStep(row));
    }
    std::vector<double> own = figures[role].own;
    figures[role].own_median = MedianOf(own);
    figures[role].met_median = MedianOf(met);
  }
  for (size_t role = 0; role < roles_.size(); ++role) {
    if (!roles_[role].has_executions() || figures[role].own.size() < 2) continue;
    std::vector<double> own;
    std::vector<double> met;
    for (size_t other = 0; other < roles_.size(); ++other) {
      if (other == role || !roles_[other].has_executions()) continue;
      own.push_back(figures[other].own_median);
      met.push_back(figures[other].met_median);
    }
    if (own.empty()) continue;
    const double of_others = MedianOf(own);
    const double difference = figures[role].own_median - of_others;
    const double wait = MedianOf(met) - figures[role].met_median;
    const double least = *std::min_element(figures[role].own.begin(), figures[role].own.end());
    if (of_others <= 0 || least < kUnevenRoleRatioMin * of_others) continue;
    if (!roles_[role].IsWorthNaming(difference)) continue;
    if (wait < kUnevenRoleWaitShareMin * difference) continue;
    Verdict verdict;
    verdict.kind = VerdictKind::kUnevenRole;
    verdict.role = roles_[role].Name(0);
    verdict.peers = static_cast<uint32_t>(own.size());
    verdict.ratio = figures[role].own_median / of_others;
    verdict.cost_ns = static_cast<uint64_t>(std::min(difference, wait));
    verdict.step_ns = static_cast<uint64_t>(roles_[role].step_ns());
    for (size_t other = 0; other < roles_.size(); ++other) {
      if (other != role) verdict.waiting += static_cast<uint32_t>(figures[other].own.size());
    }
    report.verdicts.push_back(std::move(verdict));
  }
}

void FleetJudge::FindUnevenData(InsightReport& report) {
  for (const RoleJudge& role : roles_) {
    if (!role.has_peers() || !role.costs_enough()) continue;
    const std::optional<double> spread = role.CommonSpread();
    if (!spread.has_value() && role.OwnSpread() >= kUnevenDataSpreadMin) {
      refusals_.AddGeneral(
          RefusalReason::kUnexplained,
          "A step has only one execution, so uneven data cannot be told from noise; record a run "
          "with several microbatches in a step.",
          1);
    }
    if (spread.value_or(0) < kUnevenDataSpreadMin) continue;
    Verdict verdict;
    verdict.kind = VerdictKind::kUnevenData;
    verdict.role = role.Name(0);
    verdict.peers = static_cast<uint32_t>(role.role().cores.size());
    verdict.ratio = std::exp(*spread);
    verdict.cost_ns = static_cast<uint64_t>(role.wait_ns());
    verdict.step_ns = static_cast<uint64_t>(role.step_ns());
    verdict.waiting = verdict.peers;
    report.verdicts.push_back(std::move(verdict));
  }
}

void FleetJudge::AddSums(InsightReport& report) const {
  for (const RoleJudge& role : roles_) {
    if (role.costs_enough()) report.is_below_cost = false;
    for (const uint32_t core : role.role().cores) {
      if (refusals_.IsRefused(core)) continue;
      ++report.cores_judged;
      const CoreHistory& history = *input_.histories[core];
      report.executions += std::min<uint64_t>(history.new_executions(), history.in_window());
    }
    const auto wait_ns = static_cast<uint64_t>(std::max(0.0, role.wait_ns()));
    if (wait_ns < report.exposed_wait_ns) continue;
    report.exposed_wait_ns = wait_ns;
    report.explained_wait_ns = std::min(wait_ns, static_cast<uint64_t>(explained_ns_));
  }
}

}  // namespace neurontrace
