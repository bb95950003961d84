// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/stacks/stack_tree.h"
#include "neurontrace/v1/stacks.pb.h"

namespace neurontrace {

// Returns "hang-not-entered" for a value of the enumeration, as people read it: "no-answer".
std::string StacksOutcomeName(v1::StacksOutcome outcome);

// Writes the nodes of the tree, and the short answer about them, into a report that has its
// members: the path that most share, where odd ones differ, and whose stacks were not taken, at
// most limits::kStackLinesMax lines. Names of functions come from outside and are clean already.
// Pure.
void FillReport(const StackTree& tree, v1::StacksReport& report);

}  // namespace neurontrace
