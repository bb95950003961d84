// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tests/insight_sim/accuracy.h"

namespace neurontrace {

// A goal of the proof, and whether the windows reach it.
struct AccuracyGoal {
  std::string text;
  std::string figure;  // what was measured
  bool is_reached = false;
  // Whether continuous integration fails without it.
  bool is_required = false;
};

std::vector<AccuracyGoal> AccuracyGoals(const std::vector<AccuracyTrial>& trials,
                                        const std::vector<AccuracyResult>& results);
// Returns the tables of docs/user/insight_accuracy.md in Markdown, with every window in which an
// innocent rank was named, and how to repeat it.
std::string AccuracyTables(const std::vector<AccuracyTrial>& trials,
                           const std::vector<AccuracyResult>& results);
std::string AccuracyGoalTable(const std::vector<AccuracyGoal>& goals);

}  // namespace neurontrace
