// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/answers.h"
#include "simulate/golden.h"

namespace neurontrace {

// What a tool's answers are worth about one planned fault.
enum class FaultScore : uint8_t {
  kExact,    // kind, ranks, phase and group are right, as far as they are said
  kInexact,  // a guilty rank is named, but not all of that is right
  kRefused,  // not named, and its ranks were not judged
  kMissed,   // neither
};
// "exact", "inexact", "refused", "missed". Static.
const char* FaultScoreName(FaultScore score);

struct Score {
  std::vector<FaultScore> faults;  // of each fault of the truth
  uint32_t exact = 0;
  uint32_t inexact = 0;
  uint32_t refused = 0;
  uint32_t missed = 0;
  // Verdicts that name an innocent rank, or a role or data without a fault of that kind.
  uint32_t wrong = 0;
  uint32_t verdicts = 0;
  uint32_t refusals = 0;
  std::vector<std::string> wrong_texts;  // what each of them named, the first 16
};

// Compares answers with the truth. docs/user/replay_kit.md has the rules.
Score ScoreAnswers(const Golden& golden, const Answers& answers);

}  // namespace neurontrace
