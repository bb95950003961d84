// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "aggregator/align/device_evidence.h"

namespace neurontrace {

// A device core whose clock is known, for tests: executions in the order of the ring, ten sequence
// numbers each.
struct DeviceTestWorld {
  struct Options {
    uint64_t seed = 1;
    size_t executions = 200;
    double period_s = 0.2;
    double length_s = 0.1;
    double frequency_ppm = 35;
    bool host_reads_after = true;
    size_t reset_before = SIZE_MAX;  // the execution before which the counter starts again
  };
  static constexpr uint64_t kHostBegin = 1'750'000'000'000'000'000;
  static constexpr uint64_t kCounterBegin = 144'000'000'000;

  explicit DeviceTestWorld(const Options& with) : options(with), random(with.seed) {
    for (size_t i = 0; i < options.executions; ++i) AddExecution(i);
  }

  // The counter's time of `s` seconds after the begin.
  uint64_t CounterAt(double s, bool after_reset) const {
    const double wave = 200 * 300 / 6.2832 * std::sin(s * 6.2832 / 300);
    const double counted = s * 1e9 + options.frequency_ppm * 1e3 * s + wave;
    const double reset_s = static_cast<double>(options.reset_before) * options.period_s - 0.01;
    const double since = after_reset ? counted - reset_s * (1e9 + options.frequency_ppm * 1e3) : 0;
    return after_reset ? static_cast<uint64_t>(since)
                       : kCounterBegin + static_cast<uint64_t>(counted);
  }
  static uint64_t HostAt(double s) { return kHostBegin + static_cast<uint64_t>(s * 1e9); }
  double Delay(double least_s, double mean_s) {
    return least_s + std::exponential_distribution<double>(1 / mean_s)(random);
  }
  double BeginOf(size_t i) const { return static_cast<double>(i) * options.period_s + 0.001; }

  void AddExecution(size_t i) {
    const bool after = i >= options.reset_before;
    const double start = BeginOf(i);
    const double end = start + options.length_s;
    evidence.executions.push_back({.exec_id = 1 + i,
                                   .first_sequence = 10 * i + 2,
                                   .last_sequence = 10 * i + 5,
                                   .host_before_ns = HostAt(start - Delay(4e-6, 6e-6)),
                                   .device_start_ns = CounterAt(start, after),
                                   .device_end_ns = CounterAt(end, after),
                                   .host_after_ns = HostAt(end + Delay(4e-6, 6e-6))});
    const double latched = end + 3e-6;
    const double apart = Delay(1.2e-6, 2e-6);
    evidence.sync_points.push_back(
        {.exec_id = 1 + i,
         .sequence = 10 * i + 6,
         .device_ns = CounterAt(latched, after),
         .host_ns = HostAt(options.host_reads_after ? latched + apart : latched - apart)});
  }

  Options options;
  std::mt19937_64 random;
  DeviceEvidence evidence;
};

}  // namespace neurontrace
