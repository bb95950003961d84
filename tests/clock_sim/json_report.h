// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/clock_sim/goals.h"
#include "tests/clock_sim/simulation.h"

namespace neurontrace {

// All of it as one JSON object, times in nanoseconds, for other programs.
std::string JsonReport(const SimulationResult& result, const std::vector<GoalCheck>& checks);

}  // namespace neurontrace
