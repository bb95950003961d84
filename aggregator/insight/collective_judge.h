// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "aggregator/insight/fleet_finder.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/insight/judge_input.h"

namespace neurontrace {

// Returns a verdict for each group of the fleet whose collectives transfer for longer than they
// did, and longer than those of other groups, while nobody arrives late. Its suspects are the
// members of the group. Groups with a member that is not in the capture are not judged.
std::vector<Verdict> JudgeCollectives(const JudgeInput& input, const Fleet& fleet);

}  // namespace neurontrace
