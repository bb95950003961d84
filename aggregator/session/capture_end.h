// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "aggregator/session/capture_roster.h"

namespace neurontrace {

// Judges what a capture has delivered that ends: sets the final states of its workers, and replaces
// its end warnings. `connected_agents` are those of its agents that are connected. `inventory`
// describes the workers that exist, for the warning of a capture that matched none. Returns whether
// the capture is complete.
bool JudgeEnd(const std::set<std::string, std::less<>>& connected_agents,
              std::string_view inventory, CaptureRoster& roster);

}  // namespace neurontrace
