// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/causal_report.h"

#include <fmt/format.h>

#include "tests/clock_sim/markdown.h"

namespace neurontrace {
namespace {

std::string OutOfOrder(const CausalState& state) {
  const uint64_t count = state.in_order.of - state.in_order.held;
  if (count == 0) return fmt::format("0 of {}", state.in_order.of);
  return fmt::format("{} of {}, worst {}", count, state.in_order.of,
                     Microseconds(state.worst.max()));
}

}  // namespace

std::string CausalTable(const SimulationResult& result) {
  if (result.causal_rows.empty()) return "";
  MarkdownTable table({"scenario", "error before", "after", "bound of a pair before", "after",
                       "after, jointly", "covered before / after / jointly", "out of order before",
                       "after", "mislabelled rejected", "others rejected", "us a stamp"});
  for (const CausalRow& row : result.causal_rows) {
    const CausalScore& score = row.scores.front();
    table.AddRow(
        {fmt::format("{} {}", row.scenario->name, row.scenario->words),
         Quantiles(score.before.pair), Quantiles(score.after.pair),
         Microseconds(score.before.bound.Quantile(0.5)),
         Microseconds(score.after.bound.Quantile(0.5)),
         Microseconds(score.joint_bound.Quantile(0.5)),
         fmt::format("{} / {} / {}",
                     Percent(score.before.pairs_covered.held, score.before.pairs_covered.of),
                     Percent(score.after.pairs_covered.held, score.after.pairs_covered.of),
                     Percent(score.joint_covered.held, score.joint_covered.of)),
         OutOfOrder(score.before), OutOfOrder(score.after),
         fmt::format("{} of {}", score.mislabelled_rejected.held, score.mislabelled_rejected.of),
         fmt::format("{} of {}", score.accepted.of - score.accepted.held, score.accepted.of),
         fmt::format("{:.2f}", static_cast<double>(score.pass_ns) / 1e3 /
                                   static_cast<double>(score.stamps))});
  }
  return "16 hosts that meet at barriers, 60 s: errors between two hosts, p50 / p99 / max in us, "
         "and the median bound of a pair, before the causal pass and after it (the sum of the two "
         "bounds; jointly: what the barriers that connect the pair leave)\n\n" +
         table.ToText() + "\n";
}

}  // namespace neurontrace
