// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

#include "aggregator/align/device/device_clock.h"
#include "aggregator/align/device/device_evidence.h"

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
    bool records_sync_points = false;
    size_t reset_before = SIZE_MAX;  // the execution before which the counter starts again
    size_t step_before = SIZE_MAX;   // the execution before which somebody sets the host's clock
    double step_s = -0.008;
  };
  static constexpr uint64_t kHostBegin = 1'750'000'000'000'000'000;
  static constexpr uint64_t kCounterBegin = 144'000'000'000;

  explicit DeviceTestWorld(const Options& with) : options(with), random(with.seed) {
    for (size_t i = 0; i < options.executions; ++i) AddExecution(i);
  }

  // The counter's time of `s` seconds after the begin.
  uint64_t CounterAt(double s, size_t execution) const {
    const double wave = 200 * 300 / 6.2832 * std::sin(s * 6.2832 / 300);
    const double counted = s * 1e9 + options.frequency_ppm * 1e3 * s + wave;
    if (execution < options.reset_before) return kCounterBegin + static_cast<uint64_t>(counted);
    const double reset_s = (static_cast<double>(options.reset_before) - 0.5) * options.period_s;
    return static_cast<uint64_t>(counted - reset_s * 0.999e9);
  }
  uint64_t HostAt(double s, size_t execution) const {
    return kHostBegin + static_cast<uint64_t>(
                            (s + (execution < options.step_before ? 0 : options.step_s)) * 1e9);
  }
  double Delay(double least_s, double mean_s) {
    return least_s + std::exponential_distribution<double>(1 / mean_s)(random);
  }
  double BeginOf(size_t i) const { return static_cast<double>(i) * options.period_s + 0.1; }

  void AddExecution(size_t i) {
    const double start = BeginOf(i);
    const double end = start + options.length_s;
    evidence.executions.push_back({.exec_id = 1 + i,
                                   .first_sequence = 10 * i + 2,
                                   .last_sequence = 10 * i + 5,
                                   .host_before_ns = HostAt(start - Delay(4e-6, 6e-6), i),
                                   .device_start_ns = CounterAt(start, i),
                                   .device_end_ns = CounterAt(end, i),
                                   .host_after_ns = HostAt(end + Delay(4e-6, 6e-6), i)});
    const double latched = end + 3e-6;
    const double apart = Delay(1.2e-6, 2e-6);
    DeviceSyncPoint point{
        .exec_id = 1 + i,
        .sequence = 10 * i + 6,
        .device_ns = CounterAt(latched, i),
        .host_ns = HostAt(options.host_reads_after ? latched + apart : latched - apart, i)};
    if (options.records_sync_points) point.recorded_ns = HostAt(latched + apart + 10e-6, i);
    evidence.sync_points.push_back(point);
  }

  Options options;
  std::mt19937_64 random;
  DeviceEvidence evidence;
};

// What a model makes of stamps during all executions.
struct DeviceTestErrors {
  double most_ns = 0;
  size_t beyond_bound = 0;
  size_t beyond_likely = 0;
  size_t backwards = 0;  // within a segment
  uint64_t bound_most_ns = 0;
  double bounds_ns = 0;  // all of them
};

inline DeviceTestErrors ErrorsOf(const DeviceTestWorld& world, const DeviceClockModel& model) {
  DeviceTestErrors errors;
  uint64_t before = 0;
  for (size_t i = 0; i < world.options.executions; ++i) {
    if (i == world.options.reset_before || i == world.options.step_before) before = 0;
    for (const double part : {0.0, 0.3, 0.7, 1.0}) {
      const double s = world.BeginOf(i) + part * world.options.length_s;
      const DeviceTime time{world.CounterAt(s, i), 10 * i + 3, 1 + i};
      const ClockEstimate estimate = ReadDeviceClock(model, time).estimate;
      const double error =
          std::abs(static_cast<double>(static_cast<int64_t>(estimate.y_ns - world.HostAt(s, i))));
      errors.most_ns = std::max(errors.most_ns, error);
      errors.beyond_bound += error > static_cast<double>(estimate.bound_ns) ? 1 : 0;
      errors.beyond_likely += error > static_cast<double>(estimate.likely_bound_ns) ? 1 : 0;
      errors.backwards += estimate.y_ns < before ? 1 : 0;
      errors.bound_most_ns = std::max(errors.bound_most_ns, estimate.bound_ns);
      errors.bounds_ns += static_cast<double>(estimate.bound_ns);
      before = estimate.y_ns;
    }
  }
  return errors;
}

}  // namespace neurontrace
