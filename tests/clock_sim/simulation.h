// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/clock_sim/device_trial.h"
#include "tests/clock_sim/host_score.h"

namespace neurontrace {

// What fits and maps cost on this machine, in processor time of one thread.
struct Costs {
  uint32_t hosts = 0;          // each with an hour of evidence, at 8 probes a second
  uint64_t exchanges = 0;      // of all of them
  uint64_t fit_ns = 0;         // the final fit of them all
  uint64_t live_ns = 0;        // following them all while they come in
  size_t live_bytes = 0;       // of the state that this takes, a clock
  double conversion_ns = 1e9;  // of one event, in the quickest of all runs

  double FitNsAnExchange() const { return Mean(fit_ns, exchanges); }
  double LiveNsAnExchange() const { return Mean(live_ns, exchanges); }

 private:
  static double Mean(uint64_t sum, uint64_t count) {
    return static_cast<double>(sum) / static_cast<double>(count);
  }
};

Costs MeasureCosts(uint64_t seed, uint32_t hosts);

struct SimulationOptions {
  uint64_t first_seed = 1001;
  uint32_t seeds = 20;
  uint32_t jobs = 1;
  bool quick = false;                  // leaves out what takes long
  std::vector<std::string> scenarios;  // empty: all
};

// One scenario's scores, all seeds together; one a method, the product's last.
struct HostRow {
  const HostScenario* scenario = nullptr;
  std::vector<HostScore> scores;
};

struct DeviceRow {
  const DeviceScenario* scenario = nullptr;
  std::vector<DeviceScore> scores;
};

struct SimulationResult {
  SimulationOptions options;
  std::vector<std::string> host_methods;
  std::vector<HostRow> host_rows;
  std::vector<std::string> device_methods;
  std::vector<DeviceRow> device_rows;
  std::optional<Costs> costs;  // of a whole table
};

// Called after each run, from any thread but never twice at a time.
using Progress = std::function<void(size_t done, size_t all, std::string_view name)>;

// Plays every scenario with every seed. The same options but for `jobs` give the same result, but
// for processor times.
SimulationResult Simulate(const SimulationOptions& options, const Progress& progress);

}  // namespace neurontrace
