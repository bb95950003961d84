// SPDX-License-Identifier: Apache-2.0
// Measures how often `neurontrace why` is right, against a simulated truth;
// docs/user/insight_accuracy.md has the tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "aggregator/insight/verdict_text.h"
#include "tests/insight_sim/accuracy.h"
#include "tests/insight_sim/accuracy_table.h"
#include "tests/insight_sim/events_file.h"

namespace neurontrace {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  insight_accuracy --jobs 8 > tables.md              the tables of "
    "docs/user/insight_accuracy.md\n"
    "  insight_accuracy --quick                           what continuous integration runs\n"
    "  insight_accuracy --only slow-host --seeds 2 -v     some rows, with each report\n"
    "  insight_accuracy --events trace.txt                judges the events of a file\n"
    "Exit code: 0 if the required goals are reached, 1 otherwise, 2 on wrong usage.\n"
    "The output depends only on the seeds and not on --jobs, except for costs.";

class StderrProgress final : public AccuracyProgress {
 public:
  void Update(size_t done, size_t all, std::string_view row) override {
    if (done % 16 != 0 && done != all) return;
    fmt::print(stderr, "\rinsight_accuracy: {} of {} windows, {:<40}{}", done, all,
               row.substr(0, 40), done == all ? "\n" : "");
    std::fflush(stderr);
  }
};

int JudgeEvents(const std::string& path) {
  std::ifstream in(path);
  if (!in) {
    fmt::print(stderr, "insight_accuracy: cannot read {}\n", path);
    return 2;
  }
  const auto file = ReadEventsFile(in);
  if (!file.ok()) {
    fmt::print(stderr, "insight_accuracy: {}: {}\n", path, std::string(file.status().message()));
    return 2;
  }
  InsightEngine engine(file->cores);
  for (const auto& [model, name] : file->models) engine.NameModel(model, name);
  std::vector<CoreCondition> conditions(file->cores.size());
  for (const InsightEvent& event : file->events) {
    engine.Take(event);
    uint64_t& alive_ns = conditions[event.core].alive_at_ns;
    alive_ns = std::max(alive_ns, event.end_ns);
  }
  const InsightReport report = engine.Judge(conditions);
  for (const Verdict& verdict : report.verdicts)
    fmt::print("{}\n  {}\n", VerdictText(verdict, file->cores), RuledOutText(verdict));
  for (const Refusal& refusal : report.refusals)
    fmt::print("{}\n", RefusalText(refusal, file->cores));
  fmt::print("{}\n", ReportText(report, file->cores));
  return 0;
}

void PrintReports(const std::vector<AccuracyTrial>& trials,
                  const std::vector<AccuracyResult>& results) {
  for (size_t i = 0; i < trials.size(); ++i) {
    const Score& score = results[i].score;
    fmt::print("{}, {}, seed {}: {} exact, {} inexact, {} refused, {} missed, {} wrong\n{}",
               trials[i].row, trials[i].column, trials[i].plan.seed, score.exact, score.inexact,
               score.refused, score.missed, score.wrong, results[i].text);
  }
}

int Run(int argc, char** argv) {
  CLI::App app(
      "Measures which faults of a simulated fleet `neurontrace why` names, and whom else.");
  AccuracyOptions options;
  std::string events;
  app.add_flag("--quick", options.is_quick, "64 ranks, one magnitude and 150 fault-free windows");
  app.add_flag("--small", options.is_small, "all windows, of 64 ranks instead of 1,024");
  auto* seeds = app.add_option("--seeds", options.seeds, "number of seeds of each cell")
                    ->check(CLI::Range(1, 10'000))
                    ->capture_default_str();
  app.add_option("--seed-base,--first-seed", options.first_seed,
                 "the first seed; the next ones count up")
      ->capture_default_str();
  auto* free = app.add_option("--fault-free", options.fault_free, "number of fault-free windows")
                   ->check(CLI::Range(0, 1'000'000))
                   ->capture_default_str();
  app.add_option("--jobs", options.jobs, "number of threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--only", options.only, "only rows whose name contains this text");
  app.add_flag("-v,--verbose", options.has_text, "print each window's report instead of tables");
  app.add_option("--events", events, "judge the events of a file instead; see README.md");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!events.empty()) return JudgeEvents(events);
  if (options.is_quick && seeds->count() == 0) options.seeds = 2;
  if (options.is_quick && free->count() == 0) options.fault_free = 150;
  const std::vector<AccuracyTrial> trials = AccuracyTrials(options);
  if (trials.empty()) {
    fmt::print(stderr, "insight_accuracy: no row has '{}' in its name\n", options.only);
    return 2;
  }
  StderrProgress progress;
  const std::vector<AccuracyResult> results = RunTrials(trials, options, progress);
  if (options.has_text) {
    PrintReports(trials, results);
    return 0;
  }
  const std::vector<AccuracyGoal> goals = AccuracyGoals(trials, results);
  fmt::print("Rule of {}; {} windows of {} ranks; seeds from {} on.\n\n{}{}", kInsightRuleVersion,
             trials.size(), trials.front().plan.ranks(), options.first_seed,
             AccuracyGoalTable(goals), AccuracyTables(trials, results));
  const bool is_good = std::all_of(goals.begin(), goals.end(), [](const AccuracyGoal& goal) {
    return goal.is_reached || !goal.is_required;
  });
  return is_good ? 0 : 1;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Run(argc, argv); }
