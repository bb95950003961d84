// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/clock_sim/simulation.h"

namespace neurontrace {

// The table on the causal pass of docs/clock_accuracy.md, in Markdown.
std::string CausalTable(const SimulationResult& result);

}  // namespace neurontrace
