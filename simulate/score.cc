// SPDX-License-Identifier: Apache-2.0
#include "simulate/score.h"

#include <fmt/format.h>

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kWrongTextsMax = 16;

bool Contains(const std::vector<uint32_t>& all, const std::vector<uint32_t>& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool Overlaps(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](uint32_t rank) { return std::binary_search(b.begin(), b.end(), rank); });
}

bool IsOfInstance(VerdictKind kind) {
  return kind == VerdictKind::kSlowHost || kind == VerdictKind::kSlowProcess;
}

// Kinds that are about a role, a group or data: their ranks may be left out.
bool AreRanksOptional(VerdictKind kind) {
  return kind == VerdictKind::kUnevenRole || kind == VerdictKind::kUnevenData ||
         kind == VerdictKind::kSlowCollective || kind == VerdictKind::kHangInside;
}

// Returns the guilty of all faults of one kind, or of all kinds, ascending.
std::vector<uint32_t> AllGuilty(const Golden& golden, const VerdictKind* kind) {
  std::vector<uint32_t> guilty;
  for (const GoldenFault& fault : golden.faults) {
    if (kind == nullptr || fault.kind == *kind)
      guilty.insert(guilty.end(), fault.ranks.begin(), fault.ranks.end());
  }
  std::sort(guilty.begin(), guilty.end());
  guilty.erase(std::unique(guilty.begin(), guilty.end()), guilty.end());
  return guilty;
}

// An answer may name the ranks of several faults of its kind at once.
bool AreRanksRight(const Golden& golden, const GoldenFault& fault, const Answer& answer) {
  if (!Contains(AllGuilty(golden, &fault.kind), answer.ranks)) return false;
  if (AreRanksOptional(fault.kind))
    return answer.ranks.empty() || Overlaps(answer.ranks, fault.ranks);
  const auto named =
      static_cast<size_t>(std::count_if(fault.ranks.begin(), fault.ranks.end(), [&](uint32_t rank) {
        return std::binary_search(answer.ranks.begin(), answer.ranks.end(), rank);
      }));
  // Most cores of an instance or process identify it.
  if (IsOfInstance(fault.kind)) return named * 2 > fault.ranks.size();
  return named > 0 && named == fault.ranks.size();
}

// Whether the answer, which names no rank, is about this fault's role or group.
bool IsPlaceRight(const GoldenFault& fault, const Answer& answer) {
  if (fault.group != 0 && answer.group != 0) return fault.group == answer.group;
  if (fault.stage >= 0 && !answer.role.empty())
    return answer.role.find(fmt::format("stage{}/", fault.stage)) != std::string::npos;
  // It names neither: only kUnevenData has no place.
  return !answer.ranks.empty() || fault.kind == VerdictKind::kUnevenData;
}

bool IsExact(const Golden& golden, const GoldenFault& fault, const Answer& answer) {
  if (answer.is_refusal || answer.kind != VerdictKindName(fault.kind)) return false;
  if (!fault.phase.empty() && !answer.phase.empty() && fault.phase != answer.phase) return false;
  return AreRanksRight(golden, fault, answer) && IsPlaceRight(fault, answer);
}

FaultScore ScoreFault(const Golden& golden, const GoldenFault& fault, const Answers& answers) {
  bool is_refused = false;
  bool is_near = false;
  for (const Answer& answer : answers.answers) {
    if (IsExact(golden, fault, answer)) return FaultScore::kExact;
    if (answer.is_refusal) {
      is_refused |=
          answer.ranks.empty() || fault.ranks.empty() || Overlaps(answer.ranks, fault.ranks);
      continue;
    }
    const bool is_kind = answer.kind == VerdictKindName(fault.kind);
    is_near |= Overlaps(answer.ranks, fault.ranks) ||
               (is_kind && (answer.ranks.empty() || AreRanksOptional(fault.kind)));
  }
  if (is_near) return FaultScore::kInexact;
  return is_refused ? FaultScore::kRefused : FaultScore::kMissed;
}

// Whether a verdict accuses somebody, or something, that has no fault.
bool IsWrong(const Golden& golden, const Answer& answer) {
  if (!answer.ranks.empty()) return !Contains(AllGuilty(golden, nullptr), answer.ranks);
  return std::none_of(golden.faults.begin(), golden.faults.end(), [&](const GoldenFault& fault) {
    return answer.kind == VerdictKindName(fault.kind) && IsPlaceRight(fault, answer);
  });
}

std::string AnswerText(const Answer& answer) {
  std::string text = answer.kind;
  for (size_t i = 0; i < std::min<size_t>(answer.ranks.size(), 8); ++i)
    text += fmt::format("{}{}", i == 0 ? " rank " : ", ", answer.ranks[i]);
  if (answer.ranks.size() > 8) text += fmt::format(" and {} more", answer.ranks.size() - 8);
  if (!answer.phase.empty()) text += fmt::format(", {}", answer.phase);
  if (!answer.role.empty()) text += fmt::format(", role {}", answer.role);
  return text;
}

}  // namespace

const char* FaultScoreName(FaultScore score) {
  switch (score) {
    case FaultScore::kExact:
      return "exact";
    case FaultScore::kInexact:
      return "inexact";
    case FaultScore::kRefused:
      return "refused";
    case FaultScore::kMissed:
      return "missed";
  }
  return "";
}

Score ScoreAnswers(const Golden& golden, const Answers& answers) {
  Score score;
  for (const GoldenFault& fault : golden.faults) {
    const FaultScore one = ScoreFault(golden, fault, answers);
    score.faults.push_back(one);
    if (one == FaultScore::kExact) ++score.exact;
    if (one == FaultScore::kInexact) ++score.inexact;
    if (one == FaultScore::kRefused) ++score.refused;
    if (one == FaultScore::kMissed) ++score.missed;
  }
  for (const Answer& answer : answers.answers) {
    if (answer.is_refusal) {
      ++score.refusals;
      continue;
    }
    ++score.verdicts;
    if (!IsWrong(golden, answer)) continue;
    ++score.wrong;
    if (score.wrong_texts.size() < kWrongTextsMax) score.wrong_texts.push_back(AnswerText(answer));
  }
  return score;
}

}  // namespace neurontrace
