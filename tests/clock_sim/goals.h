// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/clock_sim/simulation.h"

namespace neurontrace {

// One thing that is asked of the product, and what came out.
struct GoalCheck {
  std::string goal;  // "G1"
  std::string asked;
  std::string measured;
  bool met = false;
  std::string why = {};  // not, where that is understood
};

// Every check whose scenarios have run, in the order of the goals in docs/user/clock_accuracy.md.
std::vector<GoalCheck> CheckGoals(const SimulationResult& result);

// In Markdown.
std::string GoalTable(const std::vector<GoalCheck>& checks);

}  // namespace neurontrace
