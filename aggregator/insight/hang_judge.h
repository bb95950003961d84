// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/judge_input.h"

namespace neurontrace {

// Returns a verdict for each operation that cores of the fleet have been in for too long, and that
// is not explained by another one. Cores of whom nobody knows whether they live are refused.
std::vector<Verdict> JudgeHangs(const JudgeInput& input, const Fleet& fleet, RefusalList& refusals);

}  // namespace neurontrace
