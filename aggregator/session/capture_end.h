// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "aggregator/session/capture_roster.h"

namespace neurontrace {

// Judges what an ending capture has delivered: sets the final states of its workers and replaces
// its end warnings. `connected_agents` are those of its agents that are connected. `inventory`
// describes the existing workers, for the warning of a capture that matched none. Returns whether
// the capture is complete. Can be called again when a late agent has delivered more. On the
// coordinator's sequence.
bool CheckEnd(const std::set<std::string, std::less<>>& connected_agents,
              std::string_view inventory, CaptureRoster& roster);

}  // namespace neurontrace
