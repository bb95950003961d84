// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "aggregator/insight/insight_engine.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// Return the answer as people read it, in one line of plain text without a line break: who, where,
// by how much, what it costs and what it was compared with. Names of models and instances come from
// outside: control characters are escaped. The same text is printed by `neurontrace why`, written
// to summaries and exports, and shown on the page.
std::string VerdictText(const Verdict& verdict, std::span<const InsightCore> cores);
std::string RuledOutText(const Verdict& verdict);
std::string RefusalText(const Refusal& refusal, std::span<const InsightCore> cores);
// What was judged, and "nobody to name" with its reason if there is no verdict.
std::string ReportText(const InsightReport& report, std::span<const InsightCore> cores);

// "850 us", "118 ms", "2.31 s": three digits, as in the texts above.
std::string ShortDuration(uint64_t ns);

// Returns what identifies a verdict among those of consecutive judgements: its kind, the place that
// the kind names, and the collective. The number of suspects may change while one fault lasts.
std::string VerdictKey(const Verdict& verdict, std::span<const InsightCore> cores);

// Bytes of a name from outside in such a text; the rest of a longer one is cut.
inline constexpr size_t kInsightNameBytesMax = 80;
// Ranges of ranks in such a text; the ranks of the others are only counted.
inline constexpr size_t kInsightRangesMax = 8;

// The date of the rule that verdicts are made by, as docs/decisions/0044 has it.
inline constexpr std::string_view kInsightRuleVersion = "2026-11-28.3";

}  // namespace neurontrace
