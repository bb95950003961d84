// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/simulation.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>

#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/pair_clock.h"
#include "aggregator/align/host_fit.h"
#include "tests/clock_sim/host_scenario.h"
#include "tests/clock_sim/host_score.h"
#include "tests/clock_sim/processor_time.h"

namespace neurontrace {
namespace {

// What a measured loop ends in, so that a compiler cannot leave it out.
volatile uint64_t g_kept;

void FollowLive(const ClockEvidence& evidence, Costs& costs) {
  const auto lower = [](const ClockExchange& exchange) {
    return ClockConstraint{.x_ns = exchange.receive_raw_ns,
                           .y_min_ns = exchange.reference_send_ns,
                           .likely_min_ns = exchange.reference_send_ns + 28'000};
  };
  const auto upper = [](const ClockExchange& exchange) {
    return ClockConstraint{.x_ns = exchange.send_raw_ns,
                           .y_max_ns = exchange.reference_receive_ns,
                           .likely_max_ns = exchange.reference_receive_ns - 28'000};
  };
  PairClock clock(upper(evidence.exchanges.front()), PairParameters{});
  uint64_t sent_ns = 0;
  const uint64_t begin_ns = ProcessorTimeNs();
  for (const ClockExchange& exchange : evidence.exchanges) {
    // Of packets that overtook each other only what came back counts here: times must ascend.
    if (exchange.send_raw_ns > sent_ns) clock.Add(upper(exchange));
    g_kept = static_cast<uint64_t>(clock.Add(lower(exchange)).possible);
    sent_ns = exchange.receive_raw_ns;
  }
  costs.live_ns += ProcessorTimeNs() - begin_ns;
}

std::vector<ClockMap::Piece> PiecesOf(const ClockModel& model) {
  std::vector<ClockMap::Piece> pieces;
  const std::vector<ClockKnot>& knots = model.segments.front().knots;
  for (size_t i = 0; i + 1 < knots.size(); ++i) {
    const double x = static_cast<double>(knots[i + 1].x_ns - knots[i].x_ns);
    const double gained =
        static_cast<double>(static_cast<int64_t>(knots[i + 1].y_ns - knots[i].y_ns)) - x;
    pieces.push_back({.raw_begin_ns = knots[i].x_ns,
                      .reference_begin_ns = knots[i].y_ns,
                      .rate = static_cast<int64_t>(gained / x * 0x1p40) - 1,
                      .error_bound_ns = knots[i].bound_ns});
  }
  return pieces;
}

void Convert(const ClockModel& model, uint64_t begin_raw_ns, uint64_t end_raw_ns, Costs& costs) {
  constexpr uint64_t kEvents = 1'000'000;
  const absl::StatusOr<ClockMap> map = ClockMap::FromPieces(PiecesOf(model));
  if (!map.ok()) return;
  ClockMapCursor cursor(*map);
  const uint64_t step_ns = (end_raw_ns - begin_raw_ns) / kEvents;
  uint64_t sum = 0;
  const uint64_t begin_ns = ProcessorTimeNs();
  for (uint64_t i = 0; i < kEvents; ++i) sum += cursor.ToReference(begin_raw_ns + i * step_ns);
  const double each_ns = static_cast<double>(ProcessorTimeNs() - begin_ns) / double{kEvents};
  costs.conversion_ns = std::min(costs.conversion_ns, each_ns);
  g_kept = sum;
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

bool IsWanted(const SimulationOptions& options, std::string_view name) {
  return options.scenarios.empty() || std::find(options.scenarios.begin(), options.scenarios.end(),
                                                name) != options.scenarios.end();
}

// The runs of one kind of scenario. `Score` merges, and `trial` gives one a method.
template <typename Row, typename Score, typename Scenario>
class Trials {
 public:
  using Trial = std::function<std::vector<Score>(const Scenario& scenario, uint64_t seed)>;

  Trials(const SimulationOptions& options, size_t methods, Trial trial)
      : options_(options), methods_(methods), trial_(std::move(trial)) {}

  void Take(const Scenario& scenario) {
    if (IsWanted(options_, scenario.name)) scenarios_.push_back(&scenario);
  }
  // The tasks refer to this object.
  void AddTasks(std::vector<Task>& tasks) {
    scores_.resize(scenarios_.size() * options_.seeds);
    for (size_t i = 0; i < scores_.size(); ++i) {
      const Scenario& scenario = *scenarios_[i / options_.seeds];
      const uint64_t seed = options_.first_seed + i % options_.seeds;
      tasks.push_back({.name = scenario.name,
                       .run = [this, &scenario, seed, i] { scores_[i] = trial_(scenario, seed); }});
    }
  }
  // After all tasks have run.
  std::vector<Row> Rows() const {
    std::vector<Row> rows;
    for (size_t i = 0; i < scores_.size(); ++i) {
      if (i % options_.seeds == 0) {
        rows.push_back(
            {.scenario = scenarios_[i / options_.seeds], .scores = std::vector<Score>(methods_)});
      }
      for (size_t method = 0; method < methods_; ++method) {
        rows.back().scores[method].Merge(scores_[i][method]);
      }
    }
    return rows;
  }

 private:
  const SimulationOptions& options_;
  const size_t methods_;
  const Trial trial_;
  std::vector<const Scenario*> scenarios_;
  std::vector<std::vector<Score>> scores_;
};

template <typename Method>
std::vector<std::string> NamesOf(const std::vector<Method>& methods) {
  std::vector<std::string> names;
  for (const Method& method : methods) names.emplace_back(method.name);
  return names;
}

}  // namespace

Costs MeasureCosts(uint64_t seed, uint32_t hosts) {
  constexpr int64_t kHour = 3600 * kSecond;
  Costs costs{.hosts = hosts, .live_bytes = sizeof(PairClock)};
  HostScenario scenario = *FindHostScenario("S1");
  const ReferenceClock reference = MakeReference(scenario, seed);
  for (uint32_t member = 0; member < hosts; ++member) {
    const Host host = PlayHost(PlanHost(scenario, seed, member), reference, kHour, seed, member);
    costs.exchanges += host.records.evidence.exchanges.size();
    const uint64_t begin_ns = ProcessorTimeNs();
    const ClockModel model = FitHostClock(host.records.evidence, HostFitParameters{});
    costs.fit_ns += ProcessorTimeNs() - begin_ns;
    FollowLive(host.records.evidence, costs);
    Convert(model, host.truth.raw.Read(0), host.truth.raw.Read(kHour), costs);
  }
  return costs;
}

SimulationResult Simulate(const SimulationOptions& options, const Progress& progress) {
  constexpr uint32_t kQuickHosts = 16;
  std::vector<HostMethod> host_methods(HostBaselines().begin(), HostBaselines().end());
  host_methods.push_back({.name = "neurontrace", .map = MapByProduct});
  Trials<HostRow, HostScore, HostScenario> hosts(
      options, host_methods.size(), [&](const HostScenario& scenario, uint64_t seed) {
        return RunHostTrial(scenario, host_methods, seed);
      });
  for (const HostScenario& scenario : HostScenarios()) {
    if (!options.quick || scenario.hosts <= kQuickHosts) hosts.Take(scenario);
  }
  std::vector<DeviceMethod> device_methods(DeviceBaselines().begin(), DeviceBaselines().end());
  device_methods.push_back({.name = "neurontrace", .map = MapDeviceByProduct});
  Trials<DeviceRow, DeviceScore, DeviceScenario> devices(
      options, device_methods.size(), [&](const DeviceScenario& scenario, uint64_t seed) {
        return RunDeviceTrial(scenario, device_methods, seed);
      });
  for (const DeviceScenario& scenario : DeviceScenarios()) devices.Take(scenario);

  std::vector<Task> tasks;
  hosts.AddTasks(tasks);
  devices.AddTasks(tasks);
  RunAll(tasks, std::max(1u, options.jobs), progress);
  // Alone on its thread, after all else.
  constexpr uint32_t kCostHosts = 20;
  std::optional<Costs> costs;
  if (!options.quick && options.scenarios.empty()) {
    costs = MeasureCosts(options.first_seed, kCostHosts);
  }
  return {.options = options,
          .host_methods = NamesOf(host_methods),
          .host_rows = hosts.Rows(),
          .device_methods = NamesOf(device_methods),
          .device_rows = devices.Rows(),
          .costs = costs};
}

}  // namespace neurontrace
