// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/peer_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/insight/robust_figures.h"

namespace neurontrace {
namespace {

using insight_rule::kDeviationMin;
using insight_rule::kExecutionsKept;
using insight_rule::kMedianInefficiency;
using insight_rule::kPeersMin;
using insight_rule::kRatioMin;
using insight_rule::kRatioMinShortest;
using insight_rule::kSegmentFloorNs;
using insight_rule::kWindows;

constexpr float kAbsent = std::numeric_limits<float>::quiet_NaN();
// With more cores than this, the figures of all stand for those of all others: one core more does
// not change their medians noticeably.
constexpr size_t kPeersForExactMedians = 128;

// The median of all values but one, from the middle of all of them.
class MedianOfOthers {
 public:
  // Reorders the values.
  explicit MedianOfOthers(std::vector<double>& values) : count_(values.size()) {
    if (count_ < 2) return;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(count_ / 2);
    std::nth_element(values.begin(), middle, values.end());
    middle_ = *middle;
    below_ = *std::max_element(values.begin(), middle);
    above_ = middle + 1 == values.end() ? middle_ : *std::min_element(middle + 1, values.end());
  }

  double Without(double value) const {
    if (count_ < 2) return value;
    if (count_ % 2 == 0) return value <= below_ ? middle_ : below_;
    if (value < middle_) return (middle_ + above_) / 2;
    if (value > middle_) return (below_ + middle_) / 2;
    return (below_ + above_) / 2;
  }

 private:
  size_t count_;
  double below_ = 0;
  double middle_ = 0;
  double above_ = 0;
};

// By Quantity.
constexpr std::array<PeerTable::Figure, kQuantities> kFigures = {
    [](const CoreExecution& e) -> double { return e.own(); },
    [](const CoreExecution& e) -> double { return e.device; },
    [](const CoreExecution& e) -> double { return e.host(); }};

}  // namespace

PeerTable::PeerTable(const JudgeInput& input, const FleetRole& role, uint32_t model)
    : model_(model), rows_(role.cores.size()) {
  ChooseColumns(input, role);
  FillCells(input, role);
  CompareWithPeers();
}

PeerTable::PeerTable(const FleetRole& role, const std::vector<PeerTable>& tables)
    : model_(tables.empty() ? 0 : tables.front().model_), rows_(role.cores.size()), per_step_(1) {
  struct Source {
    uint64_t exec_id;
    const PeerTable* table;
    size_t column;
  };
  std::vector<Source> sources;
  for (const PeerTable& table : tables) {
    for (size_t column = 0; column < table.columns_; ++column)
      sources.push_back({table.exec_ids_[column], &table, column});
  }
  std::sort(sources.begin(), sources.end(),
            [](const Source& a, const Source& b) { return a.exec_id < b.exec_id; });
  const size_t length = std::min<size_t>(std::max(1u, role.period), sources.size());
  columns_ = length == 0 ? 0 : sources.size() / length;
  const size_t first = sources.size() - columns_ * length;
  cells_.assign(rows_ * columns_, nullptr);
  sums_.resize(rows_ * columns_);
  least_met_.assign(columns_, std::numeric_limits<double>::infinity());
  met_.assign(rows_ * columns_, kAbsent);
  for (size_t column = 0; column < columns_; ++column)
    exec_ids_.push_back(sources[first + (column + 1) * length - 1].exec_id);
  for (size_t row = 0; row < rows_; ++row) {
    for (size_t column = 0; column < columns_; ++column) {
      const Source* const step = sources.data() + first + column * length;
      CoreExecution& sum = sums_[row * columns_ + column];
      const bool is_complete = std::all_of(step, step + length, [&](const Source& source) {
        const CoreExecution* const one = source.table->at(row, source.column);
        if (one != nullptr) sum.AddPart(*one);
        return one != nullptr;
      });
      if (!is_complete) continue;
      cells_[row * columns_ + column] = &sum;
      least_met_[column] = std::min<double>(least_met_[column], sum.met);
      met_[column * rows_ + row] = sum.met;
    }
  }
  CompareWithPeers();
}

void PeerTable::ChooseColumns(const JudgeInput& input, const FleetRole& role) {
  absl::flat_hash_map<uint64_t, size_t> cores_with;  // by exec_id
  size_t own = 0;
  uint64_t all = 0;
  for (const uint32_t core : role.cores) {
    const CoreHistory& history = *input.histories[core];
    all += history.in_window();
    for (size_t i = 0; i < history.in_window(); ++i) {
      if (history.latest(i).key() != model_) continue;
      ++cores_with[history.latest(i).exec_id];
      ++own;
    }
  }
  per_step_ =
      static_cast<double>(own) * role.period / static_cast<double>(std::max<uint64_t>(1, all));
  for (const auto& [exec_id, cores] : cores_with) {
    if (cores * 2 >= rows_ && exec_id != 0) exec_ids_.push_back(exec_id);
  }
  std::sort(exec_ids_.begin(), exec_ids_.end());
  if (exec_ids_.size() > kExecutionsKept)
    exec_ids_.erase(exec_ids_.begin(), exec_ids_.end() - kExecutionsKept);
  columns_ = exec_ids_.size();
}

void PeerTable::FillCells(const JudgeInput& input, const FleetRole& role) {
  cells_.assign(rows_ * columns_, nullptr);
  least_met_.assign(columns_, std::numeric_limits<double>::infinity());
  met_.assign(rows_ * columns_, kAbsent);
  absl::flat_hash_map<uint64_t, size_t> column_of;
  for (size_t column = 0; column < columns_; ++column) column_of[exec_ids_[column]] = column;
  for (size_t row = 0; row < rows_; ++row) {
    const CoreHistory& history = *input.histories[role.cores[row]];
    size_t column = columns_;
    for (size_t i = 0; i < history.in_window(); ++i) {
      const CoreExecution& execution = history.latest(i);
      if (execution.key() != model_) continue;
      // Nearly always the one before the last one found.
      column = column == 0 ? columns_ : column - 1;
      if (column >= columns_ || exec_ids_[column] != execution.exec_id) {
        const auto found = column_of.find(execution.exec_id);
        if (found == column_of.end()) continue;
        column = found->second;
      }
      cells_[row * columns_ + column] = &execution;
      least_met_[column] = std::min<double>(least_met_[column], execution.met);
      met_[column * rows_ + row] = execution.met;
    }
  }
}

void PeerTable::GatherColumns(Figure figure, std::vector<float>& values) const {
  values.assign(rows_ * columns_, kAbsent);
  for (size_t row = 0; row < rows_; ++row) {
    for (size_t column = 0; column < columns_; ++column) {
      const CoreExecution* const execution = at(row, column);
      // Figures are sums of floats, so nothing of them is cut.
      if (execution != nullptr)
        values[column * rows_ + row] = static_cast<float>(figure(*execution));
    }
  }
}

void PeerTable::CompareWithPeers() {
  std::vector<float> values;
  std::vector<double> reordered;
  for (size_t q = 0; q < kQuantities; ++q) {
    std::vector<float>& x = x_[q];
    x.assign(rows_ * columns_, kAbsent);
    GatherColumns(kFigures[q], values);
    for (size_t column = 0; column < columns_; ++column) {
      const float* const of_column = &values[column * rows_];
      const auto value = [&](size_t row) {
        return std::max<double>(kSegmentFloorNs, of_column[row]);
      };
      reordered.clear();
      for (size_t row = 0; row < rows_; ++row) {
        if (!std::isnan(of_column[row])) reordered.push_back(value(row));
      }
      const MedianOfOthers median(reordered);
      for (size_t row = 0; row < rows_; ++row) {
        if (std::isnan(of_column[row])) continue;
        x[row * columns_ + column] =
            static_cast<float>(std::log(value(row) / median.Without(value(row))));
      }
    }
  }
}

std::vector<double> PeerTable::DeviationsOf(Quantity quantity) const {
  std::vector<double> result(rows_);
  std::vector<double> values;
  for (size_t row = 0; row < rows_; ++row) {
    values.clear();
    for (size_t column = 0; column < columns_; ++column) {
      const double value = x(quantity, row, column);
      if (!std::isnan(value)) values.push_back(value);
    }
    result[row] = DeviationOfChanges(values);
  }
  return result;
}

void PeerTable::AppendLatest(Quantity quantity, size_t row, uint32_t window,
                             std::vector<double>& values) const {
  for (size_t column = columns_; column > 0 && values.size() < window; --column) {
    const double value = x(quantity, row, column - 1);
    if (!std::isnan(value)) values.push_back(value);
  }
}

std::vector<PeerTable::RowFigures> PeerTable::RowMediansOf(Quantity quantity,
                                                           uint32_t window) const {
  std::vector<RowFigures> result(rows_);
  std::vector<double> values;
  for (size_t row = 0; row < rows_; ++row) {
    values.clear();
    AppendLatest(quantity, row, window, values);
    if (values.size() < window) continue;
    result[row].is_known = true;
    result[row].median = MedianOf(values);
  }
  return result;
}

void PeerTable::AddDeviations(Quantity quantity, uint32_t window, const std::vector<double>& of_all,
                              std::vector<RowFigures>& figures) const {
  std::vector<double> values;
  for (size_t row = 0; row < rows_; ++row) {
    if (!figures[row].is_known) continue;
    values.clear();
    AppendLatest(quantity, row, window, values);
    // A few executions can be alike by chance.
    figures[row].deviation =
        std::max({kDeviationMin, of_all[row], RobustDeviation(values, figures[row].median)});
  }
}

PeerTable::PeerSummary PeerTable::Summarize(const std::vector<RowFigures>& figures,
                                            size_t without_row) {
  std::vector<double> medians;
  std::vector<double> deviations;
  for (size_t row = 0; row < figures.size(); ++row) {
    if (row == without_row || !figures[row].is_known) continue;
    medians.push_back(figures[row].median);
    deviations.push_back(figures[row].deviation);
  }
  return {.peers = medians.size(),
          .deviation = MedianOf(deviations),
          .spread = RobustDeviation(medians)};
}

double PeerTable::ErrorOf(const RowFigures& row, const PeerSummary& peers, uint32_t window) {
  const auto error = [&](double deviation) {
    return kMedianInefficiency * deviation / std::sqrt(window);
  };
  if (peers.peers == 0) return error(row.deviation);
  // The peers' medians differ by more than independent executions explain if their executions have
  // something in common, so that they are as much evidence as fewer ones.
  const double in_common = std::max(1.0, peers.spread / error(peers.deviation));
  return in_common * error(std::max(row.deviation, peers.deviation));
}

std::vector<PeerExcess> PeerTable::FindExcesses(double z_min) const {
  const bool is_large = rows_ > kPeersForExactMedians;
  std::vector<PeerExcess> found(rows_);
  std::vector<bool> is_found(rows_, false);
  std::array<std::vector<double>, kQuantities> deviations;
  for (const uint32_t window : kWindows) {
    if (window > columns_) continue;
    const double x_min = std::log(window == kWindows.back() ? kRatioMinShortest : kRatioMin);
    for (size_t q = 0; q < kQuantities; ++q) {
      const auto quantity = static_cast<Quantity>(q);
      std::vector<RowFigures> figures = RowMediansOf(quantity, window);
      const bool has_excess = std::ranges::any_of(
          figures, [x_min](const RowFigures& row) { return row.is_known && row.median >= x_min; });
      if (!has_excess) continue;
      if (deviations[q].empty()) deviations[q] = DeviationsOf(quantity);
      AddDeviations(quantity, window, deviations[q], figures);
      const PeerSummary of_all = is_large ? Summarize(figures, rows_) : PeerSummary{};
      for (size_t row = 0; row < rows_; ++row) {
        // Found in a longer window.
        if (is_found[row] && found[row].window != window) continue;
        if (!figures[row].is_known) continue;
        const PeerSummary peers = is_large ? of_all : Summarize(figures, row);
        PeerComparison& result = found[row].by_quantity[q];
        result.x = figures[row].median;
        result.z = result.x / ErrorOf(figures[row], peers, window);
        result.spread = peers.spread;
        result.is_excess = peers.peers >= kPeersMin && result.x >= x_min && result.z >= z_min;
        if (!result.is_excess) continue;
        is_found[row] = true;
        found[row].row = static_cast<uint32_t>(row);
        found[row].window = window;
      }
    }
  }
  std::vector<PeerExcess> result;
  for (size_t row = 0; row < rows_; ++row) {
    if (is_found[row]) result.push_back(found[row]);
  }
  return result;
}

std::vector<double> PeerTable::MediansOf(Figure figure) const {
  std::vector<double> medians;
  std::vector<double> values;
  std::vector<float> gathered;
  GatherColumns(figure, gathered);
  for (size_t column = 0; column < columns_; ++column) {
    values.clear();
    for (size_t row = 0; row < rows_; ++row) {
      const float value = gathered[column * rows_ + row];
      if (!std::isnan(value)) values.push_back(value);
    }
    medians.push_back(MedianOf(values));
  }
  return medians;
}

double PeerTable::ExcessOf(size_t row, size_t window, Figure figure,
                           const std::vector<double>& medians, Average average) const {
  std::vector<double> differences;
  for (size_t column = columns_; column > 0 && differences.size() < window; --column) {
    const CoreExecution* own = at(row, column - 1);
    if (own != nullptr) differences.push_back(figure(*own) - medians[column - 1]);
  }
  return AverageOf(differences, average);
}

double PeerTable::RatioOf(Quantity quantity, size_t row, uint32_t window) const {
  std::vector<double> values;
  AppendLatest(quantity, row, window, values);
  return std::exp(MedianOf(values));
}

double PeerTable::MeanWait(size_t window, const std::vector<bool>& excluded,
                           Average average) const {
  std::vector<double> means;
  for (size_t column = FirstColumn(window); column < columns_; ++column) {
    double least = std::numeric_limits<double>::infinity();
    double sum = 0;
    double count = 0;
    const float* const met = &met_[column * rows_];
    for (size_t row = 0; row < rows_; ++row) {
      if (std::isnan(met[row]) || (!excluded.empty() && excluded[row])) continue;
      least = std::min<double>(least, met[row]);
      sum += met[row];
      ++count;
    }
    if (count > 0) means.push_back(sum / count - least);
  }
  return AverageOf(means, average);
}

double PeerTable::WaitOf(size_t row, uint32_t window) const {
  std::vector<double> waits;
  for (size_t column = FirstColumn(window); column < columns_; ++column) {
    const double met = met_[column * rows_ + row];
    if (!std::isnan(met)) waits.push_back(met - least_met_[column]);
  }
  return MedianOf(waits);
}

std::optional<PeerTable::Lead> PeerTable::FindLead(uint32_t window,
                                                   const std::vector<bool>& excluded) const {
  std::vector<std::vector<double>> leads(rows_);
  size_t judged = 0;
  for (size_t column = FirstColumn(window); column < columns_; ++column) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    double least = kNone;
    double second = kNone;
    size_t first = 0;
    for (size_t row = 0; row < rows_; ++row) {
      const double met = met_[column * rows_ + row];
      if (std::isnan(met) || (!excluded.empty() && excluded[row])) continue;
      if (met < least) {
        second = std::exchange(least, met);
        first = row;
      } else {
        second = std::min(second, met);
      }
    }
    if (second == kNone) continue;
    ++judged;
    leads[first].push_back(second - least);
  }
  for (size_t row = 0; row < rows_; ++row) {
    if (leads[row].size() * 2 <= judged) continue;
    // In the other executions it has no lead.
    leads[row].resize(judged, 0);
    return Lead{row, MedianOf(leads[row])};
  }
  return std::nullopt;
}

double PeerTable::OwnSpread() const {
  std::vector<double> spreads;
  std::vector<double> values;
  for (size_t column = 0; column < columns_; ++column) {
    values.clear();
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) != nullptr) values.push_back(x(Quantity::kOwn, row, column));
    }
    spreads.push_back(RobustDeviation(values));
  }
  return MedianOf(spreads);
}

}  // namespace neurontrace
