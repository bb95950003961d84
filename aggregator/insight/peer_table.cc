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

}  // namespace

double ValueOf(Quantity quantity, const CoreExecution& execution) {
  switch (quantity) {
    case Quantity::kOwn:
      return execution.own();
    case Quantity::kDevice:
      return execution.device;
    case Quantity::kHost:
      return execution.host();
  }
  return 0;
}

PeerTable::PeerTable(const JudgeInput& input, const FleetRole& role, uint32_t model)
    : model_(model), rows_(role.cores.size()) {
  ChooseColumns(input, role);
  FillCells(input, role);
  for (const Quantity quantity : {Quantity::kOwn, Quantity::kDevice, Quantity::kHost})
    CompareWithPeers(quantity);
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
  for (size_t column = 0; column < columns_; ++column) {
    const Source* const step = sources.data() + first + column * length;
    exec_ids_.push_back(step[length - 1].exec_id);
    for (size_t row = 0; row < rows_; ++row) {
      CoreExecution& sum = sums_[row * columns_ + column];
      const bool is_complete = std::all_of(step, step + length, [&](const Source& source) {
        const CoreExecution* const one = source.table->at(row, source.column);
        if (one != nullptr) sum.AddPart(*one);
        return one != nullptr;
      });
      if (!is_complete) continue;
      cells_[row * columns_ + column] = &sum;
      least_met_[column] = std::min<double>(least_met_[column], sum.met);
    }
  }
  for (const Quantity quantity : {Quantity::kOwn, Quantity::kDevice, Quantity::kHost})
    CompareWithPeers(quantity);
}

void PeerTable::ChooseColumns(const JudgeInput& input, const FleetRole& role) {
  std::vector<uint64_t> ids;
  uint64_t all = 0;
  for (const uint32_t core : role.cores) {
    const CoreHistory& history = *input.histories[core];
    all += history.in_window();
    for (size_t i = 0; i < history.in_window(); ++i) {
      if (history.latest(i).key() == model_) ids.push_back(history.latest(i).exec_id);
    }
  }
  per_step_ = static_cast<double>(ids.size()) * role.period /
              static_cast<double>(std::max<uint64_t>(1, all));
  std::sort(ids.begin(), ids.end());
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    while (end < ids.size() && ids[end] == ids[begin]) ++end;
    if ((end - begin) * 2 >= rows_ && ids[begin] != 0) exec_ids_.push_back(ids[begin]);
  }
  if (exec_ids_.size() > kExecutionsKept)
    exec_ids_.erase(exec_ids_.begin(), exec_ids_.end() - kExecutionsKept);
  columns_ = exec_ids_.size();
}

void PeerTable::FillCells(const JudgeInput& input, const FleetRole& role) {
  cells_.assign(rows_ * columns_, nullptr);
  least_met_.assign(columns_, std::numeric_limits<double>::infinity());
  absl::flat_hash_map<uint64_t, size_t> column_of;
  for (size_t column = 0; column < columns_; ++column) column_of[exec_ids_[column]] = column;
  for (size_t row = 0; row < rows_; ++row) {
    const CoreHistory& history = *input.histories[role.cores[row]];
    for (size_t i = 0; i < history.in_window(); ++i) {
      const CoreExecution& execution = history.latest(i);
      if (execution.key() != model_) continue;
      const auto found = column_of.find(execution.exec_id);
      if (found == column_of.end()) continue;
      cells_[row * columns_ + found->second] = &execution;
      least_met_[found->second] = std::min<double>(least_met_[found->second], execution.met);
    }
  }
}

void PeerTable::CompareWithPeers(Quantity quantity) {
  std::vector<float>& x = x_[static_cast<size_t>(quantity)];
  x.assign(rows_ * columns_, kAbsent);
  std::vector<double> values;
  std::vector<double> reordered;
  for (size_t column = 0; column < columns_; ++column) {
    values.assign(rows_, 0);
    reordered.clear();
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) == nullptr) continue;
      values[row] = std::max(kSegmentFloorNs, ValueOf(quantity, *at(row, column)));
      reordered.push_back(values[row]);
    }
    const MedianOfOthers median(reordered);
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) == nullptr) continue;
      x[row * columns_ + column] =
          static_cast<float>(std::log(values[row] / median.Without(values[row])));
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

std::vector<PeerTable::RowFigures> PeerTable::FiguresOf(Quantity quantity, uint32_t window,
                                                        const std::vector<double>& of_all) const {
  std::vector<RowFigures> result(rows_);
  std::vector<double> values;
  for (size_t row = 0; row < rows_; ++row) {
    values.clear();
    for (size_t column = columns_; column > 0 && values.size() < window; --column) {
      const double value = x(quantity, row, column - 1);
      if (!std::isnan(value)) values.push_back(value);
    }
    if (values.size() < window) continue;
    result[row].is_known = true;
    result[row].median = MedianOf(values);
    // A few executions can be alike by chance.
    result[row].deviation = std::max({kDeviationMin, of_all[row], RobustDeviation(values)});
  }
  return result;
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
  for (size_t q = 0; q < kQuantities; ++q) deviations[q] = DeviationsOf(static_cast<Quantity>(q));
  for (const uint32_t window : kWindows) {
    if (window > columns_) continue;
    const double ratio_min = window == kWindows.back() ? kRatioMinShortest : kRatioMin;
    for (size_t q = 0; q < kQuantities; ++q) {
      const std::vector<RowFigures> figures =
          FiguresOf(static_cast<Quantity>(q), window, deviations[q]);
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
        result.is_excess =
            peers.peers >= kPeersMin && result.x >= std::log(ratio_min) && result.z >= z_min;
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
  for (size_t column = 0; column < columns_; ++column) {
    values.clear();
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) != nullptr) values.push_back(figure(*at(row, column)));
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
  for (size_t column = columns_; column > 0 && values.size() < window; --column) {
    const double value = x(quantity, row, column - 1);
    if (!std::isnan(value)) values.push_back(value);
  }
  return std::exp(MedianOf(values));
}

double PeerTable::MeanWait(size_t window, const std::vector<bool>& excluded,
                           Average average) const {
  std::vector<double> means;
  for (size_t column = FirstColumn(window); column < columns_; ++column) {
    double least = std::numeric_limits<double>::infinity();
    double sum = 0;
    double count = 0;
    for (size_t row = 0; row < rows_; ++row) {
      if (at(row, column) == nullptr || (!excluded.empty() && excluded[row])) continue;
      least = std::min<double>(least, at(row, column)->met);
      sum += at(row, column)->met;
      ++count;
    }
    if (count > 0) means.push_back(sum / count - least);
  }
  return AverageOf(means, average);
}

double PeerTable::WaitOf(size_t row, uint32_t window) const {
  std::vector<double> waits;
  for (size_t column = FirstColumn(window); column < columns_; ++column) {
    if (at(row, column) != nullptr) waits.push_back(at(row, column)->met - least_met_[column]);
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
      if (at(row, column) == nullptr || (!excluded.empty() && excluded[row])) continue;
      const double met = at(row, column)->met;
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
