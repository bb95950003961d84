// SPDX-License-Identifier: Apache-2.0
#include "tests/insight_sim/accuracy_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/clock_sim/markdown.h"

namespace neurontrace {
namespace {

constexpr size_t kWrongListed = 40;
// Of faults of 50 %, what continuous integration demands.
constexpr double kExactShareMin = 0.9;

struct Tally {
  uint32_t windows = 0;
  uint32_t faults = 0;
  uint32_t exact = 0;
  uint32_t inexact = 0;
  uint32_t refused = 0;
  uint32_t missed = 0;
  uint32_t wrong = 0;  // windows
  uint32_t verdicts = 0;
  uint32_t refusing = 0;  // windows with refusals
  uint64_t cores = 0;
  uint64_t judged = 0;

  void Add(const AccuracyResult& result) {
    ++windows;
    faults += static_cast<uint32_t>(result.score.faults.size());
    exact += result.score.exact;
    inexact += result.score.inexact;
    refused += result.score.refused;
    missed += result.score.missed;
    wrong += result.score.wrong > 0 ? 1 : 0;
    verdicts += result.score.verdicts;
    refusing += result.score.refusals > 0 ? 1 : 0;
    cores += result.cores;
    judged += result.cores_judged;
  }
  // "18 exact, 2 refused"; "-" without windows.
  std::string Text() const {
    if (windows == 0) return "-";
    std::string text;
    const auto add = [&](uint32_t count, const char* what) {
      if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, what);
    };
    add(exact, "exact");
    add(inexact, "inexact");
    add(refused, "refused");
    add(missed, "missed");
    if (wrong > 0) add(wrong, "**wrong**");
    return text.empty() ? "nobody named" : text;
  }
};

// Tallies by row and column, each in the order of their first window.
class Grid {
 public:
  void Add(const AccuracyTrial& trial, const AccuracyResult& result) {
    Remember(rows_, trial.row);
    Remember(columns_, trial.column);
    cells_[{trial.row, trial.column}].Add(result);
  }
  std::string ToText(std::string_view corner) const {
    std::vector<std::string> header = {std::string(corner)};
    header.insert(header.end(), columns_.begin(), columns_.end());
    MarkdownTable table(header);
    for (const std::string& row : rows_) {
      std::vector<std::string> cells = {row};
      for (const std::string& column : columns_) {
        const auto cell = cells_.find({row, column});
        cells.push_back(cell == cells_.end() ? "-" : cell->second.Text());
      }
      table.AddRow(std::move(cells));
    }
    return table.ToText();
  }
  bool empty() const { return rows_.empty(); }

 private:
  static void Remember(std::vector<std::string>& names, const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }

  std::vector<std::string> rows_;
  std::vector<std::string> columns_;
  std::map<std::pair<std::string, std::string>, Tally> cells_;
};

std::string SectionTable(AccuracySection section, std::string_view title, std::string_view corner,
                         const std::vector<AccuracyTrial>& trials,
                         const std::vector<AccuracyResult>& results) {
  Grid grid;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].section == section) grid.Add(trials[i], results[i]);
  }
  if (grid.empty()) return "";
  return fmt::format("### {}\n{}\n", title, grid.ToText(corner));
}

Tally TallyOf(AccuracySection section, double magnitude_min, double magnitude_max,
              const std::vector<AccuracyTrial>& trials,
              const std::vector<AccuracyResult>& results) {
  Tally tally;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].section != section) continue;
    if (trials[i].magnitude < magnitude_min || trials[i].magnitude > magnitude_max) continue;
    tally.Add(results[i]);
  }
  return tally;
}

std::string FaultFreeTable(const std::vector<AccuracyTrial>& trials,
                           const std::vector<AccuracyResult>& results) {
  std::map<std::string, Tally> by_noise;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (trials[i].section == AccuracySection::kFaultFree)
      by_noise[trials[i].column].Add(results[i]);
  }
  if (by_noise.empty()) return "";
  MarkdownTable table({"noise", "windows", "verdicts", "windows with a refusal", "cores judged"});
  for (const auto& [noise, tally] : by_noise) {
    table.AddRow({noise, fmt::format("{}", tally.windows), fmt::format("{}", tally.verdicts),
                  fmt::format("{}", tally.refusing), Percent(tally.judged, tally.cores)});
  }
  return fmt::format("### Without a fault\n{}\n", table.ToText());
}

// The rule and the baselines on the same windows, by whether they name the guilty alone.
std::string BaselineTable(const std::vector<AccuracyTrial>& trials,
                          const std::vector<AccuracyResult>& results) {
  struct Counts {
    uint32_t windows = 0;
    uint32_t right = 0;
    uint32_t wrong = 0;
    std::string Text() const {
      if (windows == 0) return "-";
      return fmt::format("{} right, {} wrong", right, wrong);
    }
  };
  using Columns = std::map<std::string, Counts>;
  const std::vector<std::string> columns = {"5 %",   "10 %",   "20 %",      "50 %",
                                            "100 %", "uneven", "fault-free"};
  std::array<Columns, kBaselines + 1> rows;
  for (size_t i = 0; i < trials.size(); ++i) {
    const AccuracyTrial& trial = trials[i];
    std::string column = trial.column;
    if (trial.section == AccuracySection::kUneven) column = "uneven";
    if (trial.section == AccuracySection::kFaultFree) column = "fault-free";
    if (trial.section == AccuracySection::kFault) {
      // Only faults of ranks: the baselines have no words for roles, data and links.
      const Golden golden = PlannedGolden(trial.plan);
      const GoldenFault& fault = golden.faults.front();
      if (fault.ranks.empty() || fault.stage >= 0 || fault.group != 0) continue;
    }
    const bool counts = trial.section == AccuracySection::kFault ||
                        trial.section == AccuracySection::kUneven ||
                        trial.section == AccuracySection::kFaultFree;
    if (!counts) continue;
    const bool is_named = trial.section == AccuracySection::kFault;
    const auto add = [&](Columns& row, bool is_right, bool is_wrong) {
      Counts& cell = row[column];
      ++cell.windows;
      cell.right += is_right ? 1 : 0;
      cell.wrong += is_wrong ? 1 : 0;
    };
    const Score& score = results[i].score;
    const bool is_wrong = score.wrong > 0;
    add(rows[0], !is_wrong && (!is_named || score.exact + score.inexact > 0), is_wrong);
    for (size_t b = 0; b < kBaselines; ++b) {
      const BaselineScore& one = results[i].baselines[b];
      add(rows[b + 1], is_named ? one.is_right : !one.is_wrong, one.is_wrong);
    }
  }
  std::vector<std::string> header = {"rule"};
  header.insert(header.end(), columns.begin(), columns.end());
  MarkdownTable table(header);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::string> cells = {r == 0 ? "`neurontrace why`"
                                             : BaselineName(static_cast<Baseline>(r - 1))};
    for (const std::string& column : columns) cells.push_back(rows[r][column].Text());
    table.AddRow(std::move(cells));
  }
  return fmt::format("### Against simpler rules\n{}\n", table.ToText());
}

std::string WrongList(const std::vector<AccuracyTrial>& trials,
                      const std::vector<AccuracyResult>& results) {
  std::string text;
  size_t count = 0;
  for (size_t i = 0; i < trials.size(); ++i) {
    if (results[i].score.wrong == 0) continue;
    if (++count > kWrongListed) continue;
    text += fmt::format("- {}, {}, seed {}: {}\n", trials[i].row, trials[i].column,
                        trials[i].plan.seed, results[i].score.wrong_texts.front());
  }
  if (count > kWrongListed) text += fmt::format("- and {} more\n", count - kWrongListed);
  return count == 0 ? "### Wrong names\nNone.\n\n" : fmt::format("### Wrong names\n{}\n", text);
}

std::string CostText(const std::vector<AccuracyResult>& results) {
  uint64_t events = 0;
  double seconds = 0;
  size_t bytes = 0;
  for (const AccuracyResult& result : results) {
    events += result.events;
    seconds += result.engine_s;
    bytes = std::max(bytes, result.bytes_per_core);
  }
  if (events == 0) return "";
  return fmt::format(
      "### Cost\n{} windows, {:.1f} million events, {:.0f} ns of processor time an event with the "
      "judgement, at most {} bytes a core.\n\n",
      results.size(), static_cast<double>(events) / 1e6,
      seconds * 1e9 / static_cast<double>(events), bytes);
}

}  // namespace

std::string AccuracyTables(const std::vector<AccuracyTrial>& trials,
                           const std::vector<AccuracyResult>& results) {
  using enum AccuracySection;
  return SectionTable(kFault, "One fault", "fault, noise", trials, results) +
         SectionTable(kStop, "Hangs and ends", "fault \\ noise", trials, results) +
         SectionTable(kPair, "Two faults at once", "faults", trials, results) +
         SectionTable(kHole, "Holes and faults", "hole + fault of 50 %", trials, results) +
         SectionTable(kUneven, "Uneven by design", "job \\ noise", trials, results) +
         FaultFreeTable(trials, results) + BaselineTable(trials, results) +
         WrongList(trials, results) + CostText(results);
}

std::vector<AccuracyGoal> AccuracyGoals(const std::vector<AccuracyTrial>& trials,
                                        const std::vector<AccuracyResult>& results) {
  using enum AccuracySection;
  std::vector<AccuracyGoal> goals;
  const Tally free = TallyOf(kFaultFree, 0, 0, trials, results);
  if (free.windows > 0) {
    goals.push_back({"0 verdicts on fault-free windows",
                     fmt::format("{} verdicts on {} windows", free.verdicts, free.windows),
                     free.verdicts == 0, true});
    goals.push_back({"3,000 fault-free windows or more", fmt::format("{}", free.windows),
                     free.windows >= 3'000, false});
  }
  uint32_t wrong = 0;
  for (const AccuracyResult& result : results) wrong += result.score.wrong > 0 ? 1 : 0;
  goals.push_back({"no innocent named, in any window",
                   fmt::format("{} of {} windows", wrong, results.size()), wrong == 0, false});
  const Tally large = TallyOf(kFault, 0.2, 100, trials, results);
  if (large.faults > 0) {
    goals.push_back({"at most 5 % of faults of 20 % and more refused",
                     Percent(large.refused, large.faults), large.refused * 20 <= large.faults,
                     false});
  }
  const Tally half = TallyOf(kFault, 0.5, 0.5, trials, results);
  if (half.faults > 0) {
    goals.push_back({fmt::format("{:.0f} % of faults of 50 % exact", kExactShareMin * 100),
                     Percent(half.exact, half.faults), half.exact >= kExactShareMin * half.faults,
                     true});
  }
  const Tally stops = TallyOf(kStop, 0, 0, trials, results);
  if (stops.faults > 0) {
    goals.push_back({"all hangs and ends exact", Percent(stops.exact, stops.faults),
                     stops.exact == stops.faults, false});
  }
  return goals;
}

std::string AccuracyGoalTable(const std::vector<AccuracyGoal>& goals) {
  MarkdownTable table({"goal", "measured", "reached"});
  for (const AccuracyGoal& goal : goals)
    table.AddRow({goal.text, goal.figure, goal.is_reached ? "yes" : "**no**"});
  return fmt::format("### Goals\n{}\n", table.ToText());
}

}  // namespace neurontrace
