// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// One answer of a tool: what it names, or what it refuses to judge. A plain value.
struct Answer {
  bool is_refusal = false;
  std::string kind;             // VerdictKindName, or RefusalReasonName of a refusal
  std::vector<uint32_t> ranks;  // ascending; empty: none, or the whole window of a refusal
  std::string phase;            // InsightPhaseName; empty: not said
  std::string role;             // "simulated/stage2/forward.neff#1"; empty: not said
  uint64_t group = 0;           // of the events; 0: not said
};

struct Answers {
  static constexpr size_t kBytesMax = size_t{64} << 20;
  static constexpr size_t kAnswersMax = 100'000;

  std::vector<Answer> answers;
  // Ranks of a verdict that the file leaves out (`suspects_total` of insight.proto).
  uint64_t ranks_left_out = 0;
};

// Returns the answers of a report. `rank_of` has the rank of each core.
Answers AnswersOf(const InsightReport& report, std::span<const uint32_t> rank_of);
// Reads JSON of neurontrace.v1.InsightReport, as `neurontrace why --json` prints it, if the text
// begins with "{", and otherwise CSV: lines "kind,rank,phase", where the rank is a number or empty,
// and a refusal has the kind "refused" and its reason as the phase. Lines of one kind and phase are
// one answer. Fails with INVALID_ARGUMENT and the place.
absl::StatusOr<Answers> ParseAnswers(std::string_view text);

}  // namespace neurontrace
