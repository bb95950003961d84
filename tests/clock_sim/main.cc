// SPDX-License-Identifier: Apache-2.0
// Measures how true a timeline is, against a simulated truth; docs/user/clock_accuracy.md says how.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/clock_sim/goals.h"
#include "tests/clock_sim/report.h"
#include "tests/clock_sim/simulation.h"

namespace neurontrace {
namespace {

constexpr char kFooter[] =
    "Examples:\n"
    "  clock_sim --table > table.md                       the tables of "
    "docs/user/clock_accuracy.md\n"
    "  clock_sim --scenario S5 --seeds 5 --first-seed 1   one scenario, on other seeds\n"
    "  clock_sim --seeds 3 --quick                        what continuous integration runs\n"
    "Exit code: 0 if every goal is met or its shortfall is explained, 1 otherwise, 2 on wrong "
    "usage.\n"
    "The output depends only on the seeds and not on --jobs, except for costs.";

void ShowProgress(size_t done, size_t all, std::string_view name) {
  if (done % 16 != 0 && done != all) return;
  fmt::print(stderr, "\rclock_sim: {} of {} runs, {:<10}{}", done, all, name,
             done == all ? "\n" : "");
  std::fflush(stderr);
}

bool IsScenario(std::string_view name) {
  const auto has = [&](auto scenarios) {
    return std::any_of(scenarios.begin(), scenarios.end(),
                       [&](const auto& scenario) { return scenario.name == name; });
  };
  return has(HostScenarios()) || has(DeviceScenarios());
}

int Run(int argc, char** argv) {
  CLI::App app("Measures the error of timelines of simulated clocks, and compares it with other "
               "methods.");
  SimulationOptions options;
  bool table = false;
  bool json = false;
  app.add_flag("--table", table, "print the tables in Markdown (the default)");
  app.add_flag("--json", json, "print JSON instead");
  app.add_option("--seeds", options.seeds, "number of runs of each scenario")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--first-seed", options.first_seed,
                 "seed of the first run; the next runs count up")
      ->capture_default_str();
  app.add_option("--scenario", options.scenarios, "run only these scenarios");
  app.add_option("--jobs", options.jobs, "number of threads")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--quick", options.quick, "skip long scenarios and the measurement of costs");
  app.footer(kFooter);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  for (const std::string& name : options.scenarios) {
    if (IsScenario(name)) continue;
    fmt::print(stderr, "clock_sim: unknown scenario {}; the tables list all scenarios\n", name);
    return 2;
  }
  const SimulationResult result = Simulate(options, ShowProgress);
  const std::vector<GoalCheck> checks = CheckGoals(result);
  if (json) {
    fmt::print("{}", JsonReport(result, checks));
  } else {
    fmt::print("Seeds {} to {}.\n\n{}{}{}", options.first_seed,
               options.first_seed + options.seeds - 1, HostTables(result), DeviceTable(result),
               GoalTable(checks));
  }
  const bool all_well = std::all_of(checks.begin(), checks.end(), [](const GoalCheck& check) {
    return check.met || !check.why.empty();
  });
  return all_well ? 0 : 1;
}

}  // namespace
}  // namespace neurontrace

int main(int argc, char** argv) { return neurontrace::Run(argc, argv); }
