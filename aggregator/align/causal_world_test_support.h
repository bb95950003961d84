// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "aggregator/align/causal_pass.h"

namespace neurontrace {

struct CausalWorldOptions {
  uint64_t seed = 1;
  uint32_t clocks = 8;
  uint64_t seconds = 20;
  uint64_t barriers_per_s = 50;
  double asymmetry_max_us = 0;  // of the two ways of a clock's probes: the error is half of it
  double straggler_us = 500;    // mean time by which members come late
  double latency_min_us = 12;
  double latency_tail_us = 4;
  double latency_skew_max_us = 0;  // by which each clock always leaves later, at most
  uint64_t bound_ns = 33'000;
  uint64_t likely_bound_ns = 700;
};

// Clocks with a known truth, their models with known errors, and barriers between them. True time
// is ns since the world began plus kEpochNs.
class CausalWorld {
 public:
  static constexpr int64_t kEpochNs = 1'700'000'000'000'000'000;
  static constexpr uint64_t kKnotNs = 5'000'000'000;

  explicit CausalWorld(const CausalWorldOptions& options)
      : options_(options), random_(options.seed) {
    for (uint32_t c = 0; c < options.clocks; ++c) AddClock();
    for (uint64_t b = 0; b < options.seconds * options.barriers_per_s; ++b) AddBarrier(b);
  }

  // The clock's own time at a true time.
  uint64_t Raw(uint32_t clock, int64_t true_ns) const {
    const Oscillator& of = oscillators_[clock];
    const double t = static_cast<double>(true_ns - kEpochNs);
    const double wave = of.wave * of.period_ns / 6.283185307179586 *
                        (1 - std::cos(6.283185307179586 * t / of.period_ns));
    return static_cast<uint64_t>(of.begin_ns + (true_ns - kEpochNs) +
                                 static_cast<int64_t>(std::floor(of.rate * t + wave)));
  }
  // What a model says of such a time.
  static uint64_t Read(const ClockSegment& segment, uint64_t raw_ns) {
    const auto& knots = segment.knots;
    size_t i = 0;
    while (i + 2 < knots.size() && knots[i + 1].x_ns <= raw_ns) ++i;
    const auto dx = static_cast<__int128>(raw_ns) - static_cast<__int128>(knots[i].x_ns);
    const auto slope_x = static_cast<__int128>(knots[i + 1].x_ns - knots[i].x_ns);
    const auto slope_y = static_cast<__int128>(knots[i + 1].y_ns - knots[i].y_ns);
    __int128 part = dx * slope_y / slope_x;
    if (dx * slope_y % slope_x < 0) --part;
    return static_cast<uint64_t>(static_cast<__int128>(knots[i].y_ns) + part);
  }
  uint64_t Stamp(uint32_t clock, int64_t true_ns) const {
    return Read(models_[clock].segments[0], Raw(clock, true_ns));
  }

  // One instance: when each clock truly enters and leaves.
  struct Barrier {
    std::vector<int64_t> enters;
    std::vector<int64_t> exits;
  };

  std::vector<CausalClock> Clocks() const {
    std::vector<CausalClock> clocks;
    for (uint32_t c = 0; c < models_.size(); ++c) {
      clocks.push_back(CausalClocksOf("host-" + std::to_string(c), models_[c])[0]);
    }
    return clocks;
  }
  CausalInstances Instances() const {
    CausalInstances instances;
    for (size_t b = 0; b < barriers_.size(); ++b) {
      std::vector<CausalStamp> causes;
      std::vector<CausalStamp> effects;
      for (uint32_t c = 0; c < models_.size(); ++c) {
        causes.push_back({Stamp(c, barriers_[b].enters[c]), c});
        effects.push_back({Stamp(c, barriers_[b].exits[c]), c});
      }
      (void)instances.Add({CausalClass::kBarrier, 7, b}, causes, effects);
    }
    return instances;
  }

  const CausalWorldOptions& options() const { return options_; }
  const std::vector<ClockModel>& models() const { return models_; }
  std::vector<Barrier>& barriers() { return barriers_; }
  const std::vector<Barrier>& barriers() const { return barriers_; }
  double Uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(random_() >> 11) * 0x1p-53);
  }
  double Exponential(double mean) { return -mean * std::log1p(-Uniform(0, 1)); }

 private:
  struct Oscillator {
    int64_t begin_ns;
    double rate;
    double wave;
    double period_ns;
  };

  void AddClock() {
    skews_us_.push_back(Uniform(0, options_.latency_skew_max_us));
    oscillators_.push_back({.begin_ns = static_cast<int64_t>(Uniform(1e9, 1e15)),
                            .rate = Uniform(-3e-5, 3e-5),
                            .wave = Uniform(0, 3e-7),
                            .period_ns = Uniform(2e11, 9e11)});
    const auto clock = static_cast<uint32_t>(oscillators_.size() - 1);
    const double off_us = Uniform(-options_.asymmetry_max_us, options_.asymmetry_max_us) / 2;
    ClockSegment segment;
    const int64_t end = static_cast<int64_t>(options_.seconds * 1'000'000'000 + 2 * kKnotNs);
    for (int64_t t = -int64_t{kKnotNs}; t < end; t += kKnotNs) {
      const double error_ns = off_us * 1000 + Uniform(-200, 200);
      segment.knots.push_back(
          {.x_ns = Raw(clock, kEpochNs + t),
           .y_ns = static_cast<uint64_t>(kEpochNs + t - static_cast<int64_t>(error_ns)),
           .bound_ns = options_.bound_ns,
           .likely_bound_ns = options_.likely_bound_ns});
    }
    models_.push_back({.algorithm_version = 1, .segments = {segment}, .findings = {}});
  }

  void AddBarrier(uint64_t number) {
    const double period = 1e9 / static_cast<double>(options_.barriers_per_s);
    const int64_t begin =
        kEpochNs + static_cast<int64_t>((static_cast<double>(number) + 0.2) * period);
    Barrier barrier;
    int64_t last = 0;
    for (uint32_t c = 0; c < options_.clocks; ++c) {
      const double late = Uniform(0, 1) < 0.1 ? 10 * options_.straggler_us : options_.straggler_us;
      barrier.enters.push_back(begin + static_cast<int64_t>(Exponential(late) * 1000));
      last = std::max(last, barrier.enters.back());
    }
    for (uint32_t c = 0; c < options_.clocks; ++c) {
      const double latency =
          options_.latency_min_us + skews_us_[c] + Exponential(options_.latency_tail_us);
      barrier.exits.push_back(last + static_cast<int64_t>(latency * 1000));
    }
    barriers_.push_back(std::move(barrier));
  }

  const CausalWorldOptions options_;
  std::mt19937_64 random_;
  std::vector<Oscillator> oscillators_;
  std::vector<double> skews_us_;
  std::vector<ClockModel> models_;
  std::vector<Barrier> barriers_;
};

}  // namespace neurontrace
