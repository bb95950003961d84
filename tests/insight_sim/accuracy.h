// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/fleet_plan.h"
#include "simulate/score.h"
#include "tests/insight_sim/baselines.h"

namespace neurontrace {

// The parts of docs/user/insight_accuracy.md.
enum class AccuracySection : uint8_t { kFault, kStop, kPair, kHole, kUneven, kFaultFree };

// One window to judge. Rows and columns are those of the section's table.
struct AccuracyTrial {
  AccuracySection section = AccuracySection::kFault;
  std::string row;
  std::string column;
  double magnitude = 0;  // of a single fault; 0: none
  FleetPlan plan;
};

// How a baseline did: whether it named the guilty ranks alone.
struct BaselineScore {
  bool is_right = false;
  bool is_wrong = false;  // it named an innocent rank
};

struct AccuracyResult {
  Score score;
  std::array<BaselineScore, kBaselines> baselines = {};
  std::string text;  // the report as people read it; only where asked for
  uint32_t cores = 0;
  uint32_t cores_judged = 0;
  size_t bytes_per_core = 0;  // of the engine
  uint64_t events = 0;
  double engine_s = 0;  // of processor time, in the engine
};

struct AccuracyOptions {
  bool is_quick = false;
  bool is_small = false;  // 64 ranks
  uint32_t seeds = 20;
  uint64_t first_seed = 20'261'128;
  uint32_t fault_free = 3'000;
  uint32_t jobs = 1;
  std::string only;  // rows whose name has it; empty: all
  bool has_text = false;
};

// Returns all windows, always the same for the same options.
std::vector<AccuracyTrial> AccuracyTrials(const AccuracyOptions& options);
// Runs one window through an InsightEngine and the baselines.
AccuracyResult RunTrial(const AccuracyTrial& trial, bool has_text);

// Told after each window, by any of the threads, one at a time.
class AccuracyProgress {
 public:
  virtual ~AccuracyProgress() = default;
  virtual void Update(size_t done, size_t all, std::string_view row) = 0;
};
// Runs all windows on `jobs` threads, and returns their results in order.
std::vector<AccuracyResult> RunTrials(const std::vector<AccuracyTrial>& trials,
                                      const AccuracyOptions& options, AccuracyProgress& progress);

}  // namespace neurontrace
