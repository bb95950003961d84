// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/role_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <map>
#include <utility>

#include "aggregator/insight/robust_figures.h"

namespace neurontrace {
namespace {

using insight_rule::kCostMinNs;
using insight_rule::kCostShareMin;
using insight_rule::kExecutionsKept;
using insight_rule::kExecutionsMin;
using insight_rule::kExplainedShareMin;
using insight_rule::kFillShareMin;
using insight_rule::kPeersMin;
using insight_rule::kPeersMinWithoutModel;
using insight_rule::kRatioMin;
using insight_rule::kSquareMedianToVariance;
using insight_rule::kUnevenDataSpreadMin;
using insight_rule::kWindows;

constexpr double kOnsetShareMin = 0.8;  // of the executions since the onset

// The segments of own work.
struct OwnSegment {
  InsightPhase phase;
  PeerTable::Figure figure;
};
constexpr std::array<OwnSegment, 5> kOwnSegments = {
    {{InsightPhase::kDevice, [](const CoreExecution& e) -> double { return e.device; }},
     {InsightPhase::kSubmit, [](const CoreExecution& e) -> double { return e.submit; }},
     {InsightPhase::kPre, [](const CoreExecution& e) -> double { return e.pre; }},
     {InsightPhase::kPost, [](const CoreExecution& e) -> double { return e.post; }},
     {InsightPhase::kGap, [](const CoreExecution& e) -> double { return e.gap; }}}};

double OwnOf(const CoreExecution& execution) { return execution.own(); }
double MetOf(const CoreExecution& execution) { return execution.met; }
double IoOf(const CoreExecution& execution) { return execution.io; }
double MemoryOf(const CoreExecution& execution) { return execution.memory; }

double MedianOfRow(const PeerTable& table, size_t row, PeerTable::Figure figure) {
  std::vector<double> values;
  for (size_t column = 0; column < table.columns(); ++column) {
    if (table.at(row, column) != nullptr) values.push_back(figure(*table.at(row, column)));
  }
  return MedianOf(values);
}

std::vector<PeerTable> MakeTables(const JudgeInput& input, const FleetRole& role) {
  std::vector<PeerTable> tables;
  for (const uint32_t model : role.models) {
    PeerTable table(input, role, model);
    if (table.columns() >= kExecutionsMin) tables.push_back(std::move(table));
  }
  return tables;
}

// Of the deviations of one core in one step: the mean product of two different ones. Returns the
// median over cores and steps, which begin at column `begin`.
double MedianProduct(const std::vector<double>& deviations, size_t columns, size_t begin,
                     size_t period) {
  std::vector<double> products;
  for (size_t row = 0; row * columns < deviations.size(); ++row) {
    for (size_t step = begin; step + period <= columns; step += period) {
      double sum = 0;
      double squares = 0;
      double count = 0;
      for (size_t i = step; i < step + period; ++i) {
        const double x = deviations[row * columns + i];
        if (std::isnan(x)) continue;
        sum += x;
        squares += x * x;
        ++count;
      }
      if (count >= 2) products.push_back((sum * sum - squares) / (count * (count - 1)));
    }
  }
  return MedianOf(products);
}

// The one that the verdict prints: of the phase if it passed the test itself.
Quantity ReportedQuantity(const PeerExcess& excess, InsightPhase phase) {
  const Quantity of_phase = phase == InsightPhase::kDevice ? Quantity::kDevice : Quantity::kHost;
  if (excess.by_quantity[static_cast<size_t>(of_phase)].is_excess) return of_phase;
  for (const Quantity quantity : {Quantity::kOwn, Quantity::kDevice, Quantity::kHost}) {
    if (excess.by_quantity[static_cast<size_t>(quantity)].is_excess) return quantity;
  }
  return Quantity::kOwn;
}

}  // namespace

// What the cores of a table have in common, by column.
struct RoleJudge::TableMedians {
  explicit TableMedians(const PeerTable& table)
      : own(table.MediansOf(OwnOf)),
        met(table.MediansOf(MetOf)),
        io(table.MediansOf(IoOf)),
        memory(table.MediansOf(MemoryOf)) {
    for (const OwnSegment& segment : kOwnSegments)
      segments.push_back(table.MediansOf(segment.figure));
  }
  std::vector<double> own;
  std::vector<double> met;
  std::vector<double> io;
  std::vector<double> memory;
  std::vector<std::vector<double>> segments;  // as kOwnSegments
};

bool Frontier::AddsUp() const {
  return explained_ns >= kExplainedShareMin * (explained_ns + unexplained_ns);
}

RoleJudge::RoleJudge(const JudgeInput& input, const FleetRole& role)
    : input_(input), role_(role), tables_(MakeTables(input, role)), steps_(role, tables_) {
  FindCost();
  if (costs_enough_ && has_peers()) common_spread_ = FindCommonSpread();
}

void RoleJudge::FindCost() {
  for (const uint32_t window : kWindows) {
    const double wait = WaitIn(window, {});
    if (window == kWindows.front() || IsWorthNaming(wait)) wait_ns_ = wait;
    if (!IsWorthNaming(wait)) continue;
    costs_enough_ = true;
    return;
  }
  // Others can wait in few steps for what a core does in each.
  const double mean = MeanWait({});
  if (!IsWorthNaming(mean)) return;
  wait_ns_ = mean;
  costs_enough_ = true;
}

bool RoleJudge::has_peers() const {
  const uint32_t needed = role_.has_models ? kPeersMin : kPeersMinWithoutModel;
  return role_.cores.size() > needed;
}

bool RoleJudge::IsWorthNaming(double ns_per_step) const {
  return ns_per_step >= kCostMinNs && ns_per_step >= kCostShareMin * role_.step_ns;
}

uint32_t RoleJudge::StepsIn(uint32_t window) const {
  double most = 1;
  for (const PeerTable& table : tables_) most = std::max(most, table.per_step());
  return std::max(1u, static_cast<uint32_t>(std::lround(window / most)));
}

double RoleJudge::WaitIn(uint32_t window, const std::vector<bool>& excluded) const {
  return steps_.MeanWait(StepsIn(window), excluded);
}

double RoleJudge::MeanWait(const std::vector<bool>& excluded) const {
  return steps_.MeanWait(steps_.columns(), excluded, Average::kMean);
}

double RoleJudge::LeastZOfRole() const {
  const double cores = static_cast<double>(input_.cores.size());
  const double tables = static_cast<double>(tables_.size() + 1);
  return LeastZ(cores * tables * static_cast<double>(kQuantities * kWindows.size()));
}

double RoleJudge::OwnPerStep(size_t row) const {
  double own = 0;
  for (const PeerTable& table : tables_) own += table.per_step() * MedianOfRow(table, row, OwnOf);
  return own;
}

double RoleJudge::MetPerStep(size_t row) const {
  double met = 0;
  for (const PeerTable& table : tables_) met += table.per_step() * MedianOfRow(table, row, MetOf);
  return met;
}

double RoleJudge::MetShare() const {
  double met = 0;
  double all = 0;
  for (const uint32_t core : role_.cores) {
    const CoreHistory& history = *input_.histories[core];
    for (size_t i = 0; i < history.in_window(); ++i) {
      met += history.latest(i).met;
      all += history.latest(i).length();
    }
  }
  return all == 0 ? 0 : met / all;
}

std::string RoleJudge::Name(size_t table) const {
  const uint32_t model = this->table(table).model();
  const std::string of = table < tables_.size() ? "" : "steps of ";
  if (role_.has_models) return of + input_.ModelName(model);
  return fmt::format("{}executions with {} collectives", of, model);
}

std::vector<SlowCore> RoleJudge::FindSlowCores(bool& too_many) const {
  std::vector<SlowCore> result;
  struct Longest {
    double longer = 0;
    SlowCore slow;
  };
  std::map<uint32_t, Longest> longest;  // by row
  // Whole steps have less noise than their executions; with one execution in a step they are equal.
  const size_t count = tables_.size() + (role_.period > 1 ? 1 : 0);
  // Executions of a step that have their data in common are not so many independent observations.
  const bool has_common = CommonSpread().value_or(0) >= kUnevenDataSpreadMin;
  const double z_min = LeastZOfRole();
  for (size_t i = has_common ? tables_.size() : 0; i < count; ++i) {
    const std::vector<PeerExcess> excesses = table(i).FindExcesses(z_min);
    if (excesses.empty()) continue;
    const TableMedians medians(table(i));
    for (const PeerExcess& excess : excesses) {
      const double longer =
          table(i).per_step() * table(i).ExcessOf(excess.row, excess.window, OwnOf, medians.own);
      const auto [known, is_new] = longest.try_emplace(excess.row);
      // A model tells more than a step does.
      if (!is_new && i == tables_.size()) continue;
      SlowCore slow = Describe(excess, i, medians);
      Longest& row = known->second;
      if (!is_new && row.longer >= longer) {
        row.slow.also.push_back(std::move(slow));
        continue;
      }
      if (!is_new) {
        slow.also = std::exchange(row.slow.also, {});
        slow.also.push_back(std::move(row.slow));
      }
      row = {longer, std::move(slow)};
    }
  }
  too_many = false;
  if (longest.empty()) return result;
  for (auto& [row, kept] : longest) result.push_back(std::move(kept.slow));
  const TableMedians of_steps(steps_);
  for (SlowCore& slow : result) {
    // In lock step, others wait as much longer as its own work is longer: in each step, or on the
    // whole, if they meet it in few.
    const uint32_t steps = slow.table < tables_.size() ? StepsIn(slow.window) : slow.window;
    const double longer = steps_.ExcessOf(slow.row, steps, OwnOf, of_steps.own);
    const double less_wait =
        -std::min(steps_.ExcessOf(slow.row, steps, MetOf, of_steps.met),
                  steps_.ExcessOf(slow.row, steps_.columns(), MetOf, of_steps.met, Average::kMean));
    slow.excess_ns = std::min(longer, less_wait);
  }
  std::erase_if(result, [&](const SlowCore& slow) { return !IsWorthNaming(slow.excess_ns); });
  std::sort(result.begin(), result.end(),
            [](const SlowCore& a, const SlowCore& b) { return a.core < b.core; });
  too_many =
      result.size() * 2 >= role_.cores.size() || role_.cores.size() - result.size() < kPeersMin;
  if (result.empty()) too_many = false;
  return result;
}

SlowCore RoleJudge::Describe(const PeerExcess& excess, size_t at,
                             const TableMedians& medians) const {
  const PeerTable& table = this->table(at);
  SlowCore slow = {
      .core = role_.cores[excess.row], .row = excess.row, .table = at, .window = excess.window};
  double largest = 0;
  for (size_t i = 0; i < kOwnSegments.size(); ++i) {
    const double of_segment =
        table.ExcessOf(excess.row, excess.window, kOwnSegments[i].figure, medians.segments[i]);
    if (of_segment <= largest) continue;
    largest = of_segment;
    slow.phase = kOwnSegments[i].phase;
  }
  if (slow.phase == InsightPhase::kGap) {
    const auto fills = [&](PeerTable::Figure figure, const std::vector<double>& of_peers) {
      return table.ExcessOf(excess.row, excess.window, figure, of_peers) >= kFillShareMin * largest;
    };
    if (fills(MemoryOf, medians.memory)) slow.fill = GapFill::kMemory;
    if (fills(IoOf, medians.io)) slow.fill = GapFill::kTensorIo;
  }
  slow.quantity = ReportedQuantity(excess, slow.phase);
  const PeerComparison& figures = excess.by_quantity[static_cast<size_t>(slow.quantity)];
  slow.ratio = std::exp(figures.x);
  slow.z = figures.z;
  slow.spread = figures.spread;
  FindOnset(slow);
  return slow;
}

void RoleJudge::FindOnset(SlowCore& slow) const {
  const PeerTable& table = this->table(slow.table);
  const uint64_t counted_since_ns = input_.histories[slow.core]->new_since_ns;
  // From the latest execution that has the excess back.
  uint32_t held = 0;
  uint32_t passed = 0;
  for (size_t column = table.columns(); column > 0; --column) {
    const CoreExecution* execution = table.at(slow.row, column - 1);
    if (execution == nullptr) continue;
    const bool is_counted = execution->end_ns > counted_since_ns;
    if (is_counted) ++slow.judged;
    if (held > 0) ++passed;
    if (table.x(slow.quantity, slow.row, column - 1) < std::log(kRatioMin)) continue;
    if (is_counted) ++slow.held;
    if (held++ == 0) {
      passed = 1;
      slow.until_ns = execution->end_ns;
      slow.exec_id = execution->exec_id;
    }
    if (held >= kOnsetShareMin * passed)
      slow.since_ns = execution->end_ns - static_cast<uint64_t>(execution->length());
  }
}

Frontier RoleJudge::FindFrontier(const std::vector<uint32_t>& suspect_rows, uint32_t window) const {
  std::vector<bool> excluded(role_.cores.size(), false);
  for (const uint32_t row : suspect_rows) excluded[row] = true;
  Frontier frontier;
  frontier.explained_ns = std::max(
      {0.0, WaitIn(window, {}) - WaitIn(window, excluded), MeanWait({}) - MeanWait(excluded)});
  const auto lead = steps_.FindLead(StepsIn(window), excluded);
  if (!lead) return frontier;
  frontier.unexplained_ns = lead->lead_ns;
  frontier.leader = role_.cores[lead->row];
  return frontier;
}

uint32_t RoleJudge::CountWaiting(const SlowCore& slow,
                                 const std::vector<uint32_t>& suspect_rows) const {
  const uint32_t steps = slow.table < tables_.size() ? StepsIn(slow.window) : slow.window;
  const double enough = steps_.MeanWait(steps, {}) / 2;
  uint32_t waiting = 0;
  for (size_t row = 0; row < steps_.rows(); ++row) {
    if (std::find(suspect_rows.begin(), suspect_rows.end(), row) != suspect_rows.end()) continue;
    if (steps_.WaitOf(row, steps) >= enough) ++waiting;
  }
  return waiting;
}

double RoleJudge::OwnSpread() const {
  double spread = 0;
  for (const PeerTable& table : tables_) spread = std::max(spread, table.OwnSpread());
  return spread;
}

std::optional<double> RoleJudge::FindCommonSpread() const {
  if (role_.period < 2) return std::nullopt;
  struct Source {
    uint64_t exec_id;
    size_t table;
    size_t column;
    std::strong_ordering operator<=>(const Source& other) const {
      return exec_id <=> other.exec_id;
    }
  };
  std::vector<Source> sources;
  for (size_t table = 0; table < tables_.size(); ++table) {
    for (size_t column = 0; column < tables_[table].columns(); ++column)
      sources.push_back({tables_[table].exec_id(column), table, column});
  }
  std::sort(sources.begin(), sources.end());
  // A deviation of log own work from what the core usually has; not a number where absent.
  const size_t columns = sources.size();
  std::vector<double> deviations(role_.cores.size() * columns, NAN);
  std::vector<double> usual(tables_.size());
  for (size_t row = 0; row < role_.cores.size(); ++row) {
    for (size_t table = 0; table < tables_.size(); ++table)
      usual[table] = std::log(tables_[table].RatioOf(Quantity::kOwn, row, kExecutionsKept));
    for (size_t i = 0; i < columns; ++i) {
      deviations[row * columns + i] =
          tables_[sources[i].table].x(Quantity::kOwn, row, sources[i].column) -
          usual[sources[i].table];
    }
  }
  // Nobody tells where a step begins: it is where its executions have the most in common.
  double most = 0;
  for (size_t begin = 0; begin < role_.period; ++begin)
    most = std::max(most, MedianProduct(deviations, columns, begin, role_.period));
  return std::sqrt(most / kSquareMedianToVariance);
}

}  // namespace neurontrace
