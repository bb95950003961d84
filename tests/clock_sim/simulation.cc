// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/simulation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "tests/clock_sim/host_trial.h"

namespace neurontrace {
namespace {

bool IsWanted(const SimulationOptions& options, std::string_view name) {
  return options.scenarios.empty() || std::find(options.scenarios.begin(), options.scenarios.end(),
                                                name) != options.scenarios.end();
}

struct Task {
  std::string_view name;
  std::function<void()> run;
};

void RunAll(const std::vector<Task>& tasks, uint32_t jobs, const Progress& progress) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  const auto work = [&] {
    for (size_t i = next++; i < tasks.size(); i = next++) {
      tasks[i].run();
      const std::lock_guard<std::mutex> lock(mutex);
      progress(++done, tasks.size(), tasks[i].name);
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

SimulationResult Simulate(const SimulationOptions& options, const Progress& progress) {
  constexpr uint32_t kQuickHosts = 16;
  SimulationResult result{.options = options, .host_methods = {}, .host_rows = {}};
  std::vector<HostMethod> methods(HostBaselines().begin(), HostBaselines().end());
  methods.push_back({.name = "neurontrace", .map = MapByProduct});
  for (const HostMethod& method : methods) result.host_methods.emplace_back(method.name);

  for (const HostScenario& scenario : HostScenarios()) {
    if (!IsWanted(options, scenario.name)) continue;
    if (options.quick && scenario.hosts > kQuickHosts) continue;
    result.host_rows.push_back(
        {.scenario = &scenario, .scores = std::vector<HostScore>(methods.size())});
  }
  std::vector<Task> tasks;
  std::vector<std::vector<HostScore>> scores(result.host_rows.size() * options.seeds);
  for (size_t row = 0; row < result.host_rows.size(); ++row) {
    for (uint32_t i = 0; i < options.seeds; ++i) {
      const HostScenario& scenario = *result.host_rows[row].scenario;
      std::vector<HostScore>& into = scores[row * options.seeds + i];
      const uint64_t seed = options.first_seed + i;
      tasks.push_back({.name = scenario.name, .run = [&scenario, &methods, &into, seed] {
                         into = RunHostTrial(scenario, methods, seed);
                       }});
    }
  }
  RunAll(tasks, std::max(1u, options.jobs), progress);
  for (size_t task = 0; task < scores.size(); ++task) {
    std::vector<HostScore>& into = result.host_rows[task / options.seeds].scores;
    for (size_t method = 0; method < into.size(); ++method)
      into[method].Merge(scores[task][method]);
  }
  return result;
}

}  // namespace neurontrace
