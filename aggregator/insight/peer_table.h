// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/judge_input.h"
#include "aggregator/insight/robust_figures.h"

namespace neurontrace {

// What is compared with the peers.
enum class Quantity : uint8_t { kOwn = 0, kDevice, kHost };
inline constexpr size_t kQuantities = 3;

// One quantity of one core in one window, against its peers. Zeros if no core has an excess of it.
// A plain value.
struct PeerComparison {
  double x = 0;  // median logarithm of the ratio
  double z = 0;
  double spread = 0;  // of the peers' medians
  bool is_excess = false;
};

// A core whose own work passes the test. A plain value.
struct PeerExcess {
  uint32_t row = 0;
  uint32_t window = 0;  // executions
  std::array<PeerComparison, kQuantities> by_quantity = {};
};

// The executions of one model of a role: one row for each core, one column for each exec_id that at
// least half of the cores have, ascending. Built for one judgement; the histories must outlive it.
// Used by one thread at a time.
class PeerTable {
 public:
  PeerTable(PeerTable&&) = default;
  PeerTable& operator=(PeerTable&&) = default;
  PeerTable(const PeerTable&) = delete;
  PeerTable& operator=(const PeerTable&) = delete;
  PeerTable(const JudgeInput& input, const FleetRole& role, uint32_t model);
  // The whole steps of a role: each cell is the sum of a core's executions in one step. A wait that
  // an execution causes can fall into a later one of its step, so costs are compared by step.
  PeerTable(const FleetRole& role, const std::vector<PeerTable>& tables);

  uint32_t model() const { return model_; }
  size_t rows() const { return rows_; }
  size_t columns() const { return columns_; }
  // How often the model is executed in a step.
  double per_step() const { return per_step_; }
  // Returns nullptr if the core does not have it.
  const CoreExecution* at(size_t row, size_t column) const {
    return cells_[row * columns_ + column];
  }
  // The logarithm of the core's quantity to the median of its peers; not a number where absent.
  double x(Quantity quantity, size_t row, size_t column) const {
    return x_[static_cast<size_t>(quantity)][row * columns_ + column];
  }

  // Returns the cores that pass the test with at least this z, ascending.
  std::vector<PeerExcess> FindExcesses(double z_min) const;
  using Figure = double (*)(const CoreExecution&);
  // Returns the median over all cores, by column.
  std::vector<double> MediansOf(Figure figure) const;
  // Returns the average, over the last executions of the core, of `figure` less `medians`.
  double ExcessOf(size_t row, size_t window, Figure figure, const std::vector<double>& medians,
                  Average average = Average::kMedian) const;
  // Returns exp(median x).
  double RatioOf(Quantity quantity, size_t row, uint32_t window) const;

  // Returns the average over the last `window` executions of the mean wait of all cores without
  // those that are `excluded` (by row; empty: none).
  double MeanWait(size_t window, const std::vector<bool>& excluded,
                  Average average = Average::kMedian) const;
  // The wait of one core.
  double WaitOf(size_t row, uint32_t window) const;
  // The one core that waits less than all others in more than half of the executions, and by how
  // much.
  struct Lead {
    size_t row = 0;
    double lead_ns = 0;
  };
  std::optional<Lead> FindLead(uint32_t window, const std::vector<bool>& excluded) const;
  // The spread of log own work over the cores of one execution, median over executions.
  double OwnSpread() const;
  uint64_t exec_id(size_t column) const { return exec_ids_[column]; }

 private:
  void ChooseColumns(const JudgeInput& input, const FleetRole& role);
  void FillCells(const JudgeInput& input, const FleetRole& role);
  // Fills x_.
  void CompareWithPeers();
  // Fills `values` with this figure of all executions, column by column; not a number where absent.
  // Executions of one core are beside each other in memory, and columns are what is compared.
  void GatherColumns(Figure figure, std::vector<float>& values) const;
  // Median of x over the last `window` executions of each row, and its deviation, which is the
  // larger of that in the window and that of all executions.
  struct RowFigures {
    bool is_known = false;
    double median = 0;
    double deviation = 0;
  };
  // Appends x of a row's last `window` executions, or fewer if it has fewer.
  void AppendLatest(Quantity quantity, size_t row, uint32_t window,
                    std::vector<double>& values) const;
  // Without deviations, which are needed only if one of the medians is an excess.
  std::vector<RowFigures> RowMediansOf(Quantity quantity, uint32_t window) const;
  void AddDeviations(Quantity quantity, uint32_t window, const std::vector<double>& of_all,
                     std::vector<RowFigures>& figures) const;
  // By row: the deviation of x over all executions, from its changes.
  std::vector<double> DeviationsOf(Quantity quantity) const;
  // What the other rows' figures have in common.
  struct PeerSummary {
    size_t peers = 0;
    double deviation = 0;  // median
    double spread = 0;     // of the medians
  };
  static PeerSummary Summarize(const std::vector<RowFigures>& figures, size_t without_row);
  // The standard error of a row's median.
  static double ErrorOf(const RowFigures& row, const PeerSummary& peers, uint32_t window);
  size_t FirstColumn(size_t window) const { return columns_ < window ? 0 : columns_ - window; }

  uint32_t model_;
  size_t rows_;
  size_t columns_ = 0;
  double per_step_ = 0;
  std::vector<uint64_t> exec_ids_;   // by column
  std::vector<CoreExecution> sums_;  // of steps; cells_ point into it
  std::vector<const CoreExecution*> cells_;
  std::vector<double> least_met_;  // by column
  std::vector<float> met_;         // column by column; not a number where absent
  std::array<std::vector<float>, kQuantities> x_;
};

}  // namespace neurontrace
