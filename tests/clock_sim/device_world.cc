// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/device_world.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace neurontrace {
namespace {

enum DicePart : uint64_t { kCoreDice = 301, kCounterDice = 302 };

constexpr uint64_t kHostBegin = 1'790'000'000'000'000'000;

constexpr DeviceScenario kScenarios[] = {
    {.name = "D1", .words = "clean"},
    {.name = "D2",
     .words = "reset in mid-run, 0.5 % corrupt, 1 % missing, 0.2 % swapped sync points",
     .corrupt_chance = 0.005,
     .missing_chance = 0.01,
     .swapped_chance = 0.002,
     .resets = true},
    {.name = "D3", .words = "40 % of sync points heavy-tailed", .sync_tail_chance = 0.4},
    {.name = "D4",
     .words = "executions of 2.5 to 3.5 s, brackets 8 times as loose",
     .duration_ns = 240 * kSecond,
     .execution_least_ns = 2500 * kMillisecond,
     .execution_most_ns = 3500 * kMillisecond,
     .pause_mean_ns = 20 * kMillisecond,
     .bracket_least_ns = 32 * kMicrosecond,
     .bracket_jitter_ns = 48'000,
     .corrupt_chance = 0.005},
    {.name = "D5",
     .words = "2 executions/s, 10 % of sync points missing, 2 % corrupt",
     .execution_least_ns = 50 * kMillisecond,
     .execution_most_ns = 400 * kMillisecond,
     .pause_mean_ns = 330 * kMillisecond,
     .corrupt_chance = 0.02,
     .missing_chance = 0.1},
};

// Plays one core.
class Core {
 public:
  Core(const DeviceScenario& scenario, uint64_t seed)
      : scenario_(scenario),
        dice_(seed, kCoreDice),
        host_reads_after_(dice_.Chance(0.5)),
        reset_at_ns_(scenario.resets
                         ? static_cast<int64_t>(static_cast<double>(scenario.duration_ns) *
                                                dice_.Between(0.3, 0.7))
                         : scenario.duration_ns * 2),
        counter_(MakeCounter(seed)) {}

  Device Play();

 private:
  TrueClock MakeCounter(uint64_t seed);
  // The counter at a true time; since its reset, if that is before.
  uint64_t Count(int64_t true_ns) const {
    return counter_.Read(true_ns) -
           (true_ns < reset_at_ns_ ? 0 : counter_.Read(reset_at_ns_) - kMillisecond);
  }
  uint64_t HostAt(int64_t true_ns) const { return kHostBegin + static_cast<uint64_t>(true_ns); }
  int64_t Bracket();
  void Execute(int64_t submit_ns, int64_t start_ns, int64_t end_ns, Device& device);
  std::optional<DeviceRecords::SyncPoint> Synchronize(uint64_t exec_id, int64_t latched_ns);

  const DeviceScenario& scenario_;
  Dice dice_;
  const bool host_reads_after_;  // of a sync point, or before
  const int64_t reset_at_ns_;
  const TrueClock counter_;
};

TrueClock Core::MakeCounter(uint64_t seed) {
  ClockPlan plan;
  plan.origin_ns = kSecond + dice_.Next64() % (30ull * 86'400 * kSecond);
  plan.frequency_ppm = dice_.Normal(40);
  plan.wave_ppm = dice_.Between(0.1, 0.3);
  plan.wave_period_s = dice_.Between(200, 900);
  plan.wave_phase = dice_.Between(0, 2 * std::numbers::pi);
  return TrueClock(plan, scenario_.duration_ns, Dice(seed, kCounterDice));
}

int64_t Core::Bracket() {
  double extra = dice_.Exponential(scenario_.bracket_jitter_ns);
  if (dice_.Chance(0.1)) extra += dice_.Pareto(15e3, 1.3, 20e6);
  return scenario_.bracket_least_ns + static_cast<int64_t>(extra);
}

std::optional<DeviceRecords::SyncPoint> Core::Synchronize(uint64_t exec_id, int64_t latched_ns) {
  double apart = 1200 + dice_.Exponential(2000);
  if (dice_.Chance(scenario_.sync_tail_chance)) apart += dice_.Pareto(15e3, 1.3, 5e6);
  const int64_t apart_ns = static_cast<int64_t>(apart);
  int64_t host_read_ns = latched_ns + (host_reads_after_ ? apart_ns : -apart_ns);
  if (dice_.Chance(scenario_.corrupt_chance)) {
    host_read_ns += static_cast<int64_t>(dice_.Between(-5e9, 5e9));
  }
  if (dice_.Chance(scenario_.missing_chance)) return std::nullopt;
  return DeviceRecords::SyncPoint{
      .exec_id = exec_id, .device_ns = Count(latched_ns), .host_ns = HostAt(host_read_ns)};
}

void Core::Execute(int64_t submit_ns, int64_t start_ns, int64_t end_ns, Device& device) {
  constexpr size_t kInside = 4;
  const size_t index = device.records.executions.size();
  std::vector<int64_t> times = {start_ns, end_ns};
  for (size_t i = 0; i < kInside; ++i) {
    times.push_back(start_ns +
                    static_cast<int64_t>(dice_.Unit() * static_cast<double>(end_ns - start_ns)));
  }
  std::sort(times.begin(), times.end());
  for (const int64_t at : times) {
    device.stamps.push_back({.execution = index, .device_ns = Count(at)});
    device.truth_ns.push_back(HostAt(at));
  }
  const int64_t complete_ns = end_ns + Bracket();
  const int64_t latched_ns = end_ns + static_cast<int64_t>(dice_.Between(1e3, 5e3));
  device.records.executions.push_back({.exec_id = 1000 + index,
                                       .submit_ns = HostAt(submit_ns),
                                       .complete_ns = HostAt(complete_ns),
                                       .start_ns = Count(start_ns),
                                       .end_ns = Count(end_ns),
                                       .sync = Synchronize(1000 + index, latched_ns)});
}

Device Core::Play() {
  Device device;
  int64_t free_ns = 100 * kMillisecond;
  const double ratio = std::log(static_cast<double>(scenario_.execution_most_ns) /
                                static_cast<double>(scenario_.execution_least_ns));
  while (true) {
    const int64_t submit_ns =
        free_ns +
        static_cast<int64_t>(dice_.Exponential(static_cast<double>(scenario_.pause_mean_ns)));
    const int64_t start_ns = submit_ns + Bracket();
    const int64_t end_ns =
        start_ns + static_cast<int64_t>(static_cast<double>(scenario_.execution_least_ns) *
                                        std::exp(ratio * dice_.Unit()));
    if (end_ns > scenario_.duration_ns) break;
    free_ns = end_ns + 100 * kMicrosecond;
    if (submit_ns - kSecond < reset_at_ns_ && end_ns + kSecond > reset_at_ns_) {
      continue;  // the core is loaded again: nothing runs
    }
    if (start_ns > reset_at_ns_ && !device.reset) device.reset = device.records.executions.size();
    Execute(submit_ns, start_ns, end_ns, device);
  }
  std::vector<DeviceRecords::Execution>& executions = device.records.executions;
  for (size_t i = 0; i + 1 < executions.size(); ++i) {
    if (!dice_.Chance(scenario_.swapped_chance) || device.reset == i + 1) continue;
    if (executions[i].sync && executions[i + 1].sync) {
      std::swap(executions[i].sync->exec_id, executions[i + 1].sync->exec_id);
    }
  }
  return device;
}

}  // namespace

std::span<const DeviceScenario> DeviceScenarios() { return kScenarios; }

Device PlayDevice(const DeviceScenario& scenario, uint64_t seed) {
  return Core(scenario, seed).Play();
}

}  // namespace neurontrace
