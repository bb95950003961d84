// SPDX-License-Identifier: Apache-2.0
// The causal pass over a whole capture, from instances to shifts: how long it takes. Stamps are
// those of clocks with a known error each, so that it has something to do.
//   Barriers: clocks, barriers a second, seconds, largest asymmetry of a clock's probes in us
//   Flows: clocks, messages in thousands, seconds, largest asymmetry
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>

#include "aggregator/align/causal_pass.h"
#include "base/time_units.h"

namespace neurontrace {
namespace {

constexpr uint64_t kBeginNs = 1'700'000'000'000'000'000;

class Fleet {
 public:
  Fleet(uint32_t clocks, uint64_t seconds, double asymmetry_us) : seconds_(seconds) {
    for (uint32_t c = 0; c < clocks; ++c) {
      errors_ns_.push_back((Uniform() - 0.5) * asymmetry_us * 1000);
      CausalClock clock{.name = "host-" + std::to_string(c), .knots = {}};
      for (uint64_t t = 0; t <= seconds + 10; t += 5) {
        const uint64_t y_ns = kBeginNs + t * kNsPerSecond;
        clock.knots.push_back(
            {.x_ns = t * kNsPerSecond, .y_ns = y_ns, .bound_ns = 33'000, .likely_bound_ns = 700});
      }
      clocks_.push_back(std::move(clock));
    }
  }

  CausalInstances Barriers(uint64_t per_second) {
    CausalInstances instances;
    const uint64_t count = seconds_ * per_second;
    for (uint64_t b = 0; b < count; ++b) {
      const double begin = static_cast<double>(b) * 1e9 / static_cast<double>(per_second);
      std::vector<CausalStamp> causes;
      std::vector<CausalStamp> effects;
      double last = 0;
      for (uint32_t c = 0; c < clocks_.size(); ++c) {
        const double enter = begin + Exponential(500'000);
        last = std::max(last, enter);
        causes.push_back(Stamp(c, enter));
      }
      for (uint32_t c = 0; c < clocks_.size(); ++c) {
        effects.push_back(Stamp(c, last + 12'000 + Exponential(4'000)));
      }
      Add(instances, {CausalClass::kBarrier, 1, b}, causes, effects);
    }
    return instances;
  }

  CausalInstances Flows(uint64_t count) {
    CausalInstances instances;
    for (uint64_t f = 0; f < count; ++f) {
      const double sent = (static_cast<double>(f) + Uniform()) / static_cast<double>(count) *
                          static_cast<double>(seconds_ * kNsPerSecond);
      const auto from = static_cast<uint32_t>(random_() % clocks_.size());
      const auto to = static_cast<uint32_t>((from + 1 + random_() % 8) % clocks_.size());
      Add(instances, {CausalClass::kFlow, 1, f}, {Stamp(from, sent)},
          {Stamp(to, sent + 12'000 + Exponential(20'000))});
    }
    return instances;
  }

  const std::vector<CausalClock>& clocks() const { return clocks_; }

 private:
  double Uniform() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double Exponential(double mean) { return -mean * std::log1p(-Uniform()); }
  CausalStamp Stamp(uint32_t clock, double true_ns) const {
    return {kBeginNs + static_cast<uint64_t>(true_ns + 100'000 - errors_ns_[clock]), clock};
  }
  static void Add(CausalInstances& instances, const CausalInstance& instance,
                  const std::vector<CausalStamp>& causes, const std::vector<CausalStamp>& effects) {
    if (!instances.Add(instance, causes, effects).ok()) std::abort();
  }

  const uint64_t seconds_;
  std::mt19937_64 random_{1};
  std::vector<double> errors_ns_;
  std::vector<CausalClock> clocks_;
};

void Measure(benchmark::State& state, const Fleet& fleet, const CausalInstances& instances) {
  CausalParameters parameters;
  parameters.modes.fill(state.range(4) != 0 ? CausalMode::kApply : CausalMode::kCheck);
  CausalReport report;
  for (auto _ : state) {
    auto result = RunCausalPass(fleet.clocks(), instances, parameters);
    if (!result.ok()) std::abort();
    report = result->report;
  }
  uint64_t before = 0;
  uint64_t after = 0;
  uint64_t rejected = 0;
  for (const CausalClassReport& kind : report.classes) {
    before += kind.violated_before;
    after += kind.violated_after;
    rejected += kind.rejected;
  }
  state.counters["stamps"] = static_cast<double>(instances.stamps());
  state.counters["violated"] = static_cast<double>(before);
  state.counters["violated_after"] = static_cast<double>(after);
  state.counters["rejected"] = static_cast<double>(rejected);
  state.counters["rounds"] = static_cast<double>(report.rounds);
  state.SetItemsProcessed(static_cast<int64_t>(instances.stamps() * state.iterations()));
}

void BM_Barriers(benchmark::State& state) {
  Fleet fleet(static_cast<uint32_t>(state.range(0)), static_cast<uint64_t>(state.range(2)),
              static_cast<double>(state.range(3)));
  Measure(state, fleet, fleet.Barriers(static_cast<uint64_t>(state.range(1))));
}
BENCHMARK(BM_Barriers)
    ->ArgNames({"clocks", "per_s", "seconds", "asymmetry_us", "apply"})
    ->Args({1000, 50, 100, 20, 0})
    ->Args({1000, 50, 100, 0, 1})
    ->Args({1000, 50, 100, 20, 1})
    ->Args({1000, 50, 100, 60, 1})
    ->Args({16, 50, 60, 60, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

void BM_Flows(benchmark::State& state) {
  Fleet fleet(static_cast<uint32_t>(state.range(0)), static_cast<uint64_t>(state.range(2)),
              static_cast<double>(state.range(3)));
  Measure(state, fleet, fleet.Flows(static_cast<uint64_t>(state.range(1)) * 1000));
}
BENCHMARK(BM_Flows)
    ->ArgNames({"clocks", "thousands", "seconds", "asymmetry_us", "apply"})
    ->Args({1000, 10'000, 100, 0, 1})
    ->Args({1000, 10'000, 100, 60, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace neurontrace
