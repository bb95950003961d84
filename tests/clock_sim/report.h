// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/clock_sim/goals.h"
#include "tests/clock_sim/simulation.h"

namespace neurontrace {

// The table on devices of docs/user/clock_accuracy.md, in Markdown.
std::string DeviceTable(const SimulationResult& result);

// The tables on hosts of docs/user/clock_accuracy.md, in Markdown.
std::string HostTables(const SimulationResult& result);

// All of it as one JSON object, times in nanoseconds, for other programs.
std::string JsonReport(const SimulationResult& result, const std::vector<GoalCheck>& checks);

}  // namespace neurontrace
