// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/host_report.h"

#include <fmt/format.h>

#include "tests/clock_sim/markdown.h"

namespace neurontrace {
namespace {

// Of one host there are no pairs: then what it is off by itself.
const LogHistogram& ErrorsOf(const HostRow& row, const HostScore& score) {
  return row.scenario->hosts == 1 ? score.own : score.pair;
}

std::string ErrorTable(const SimulationResult& result) {
  std::vector<std::string> header = {"scenario"};
  for (const std::string& method : result.host_methods) header.push_back(method);
  MarkdownTable table(std::move(header));
  for (const HostRow& row : result.host_rows) {
    std::vector<std::string> cells = {
        fmt::format("{} {}", row.scenario->name, row.scenario->words)};
    for (const HostScore& score : row.scores) cells.push_back(Quantiles(ErrorsOf(row, score)));
    table.AddRow(std::move(cells));
  }
  return "Error between two hosts, p50 / p99 / max in us (with one host: against the "
         "reference)\n\n" +
         table.ToText();
}

// Only methods that say a bound.
std::string CoverageTable(const SimulationResult& result) {
  std::vector<std::string> header = {"scenario"};
  std::vector<size_t> shown;
  for (size_t i = 0; i < result.host_methods.size(); ++i) {
    const bool has_bound =
        !result.host_rows.empty() && result.host_rows.front().scores[i].bound.Quantile(0.5) < 1e20;
    if (!has_bound) continue;
    shown.push_back(i);
    header.push_back(result.host_methods[i] + ": stamps");
    header.push_back("pairs");
    header.push_back("bound");
  }
  MarkdownTable table(std::move(header));
  for (const HostRow& row : result.host_rows) {
    std::vector<std::string> cells = {std::string(row.scenario->name)};
    for (const size_t i : shown) {
      const HostScore& score = row.scores[i];
      cells.push_back(Percent(score.covered.held, score.covered.of));
      cells.push_back(Percent(score.pairs_covered.held, score.pairs_covered.of));
      cells.push_back(Microseconds(score.bound.Quantile(0.5)));
    }
    table.AddRow(std::move(cells));
  }
  return "Coverage: per cent of stamps, and of pairs of stamps, within their bound; the median "
         "bound "
         "in us\n\n" +
         table.ToText();
}

std::string PerDay(uint64_t count, double host_seconds) {
  return host_seconds == 0
             ? "-"
             : fmt::format("{:.3g}", static_cast<double>(count) * 86'400 / host_seconds);
}

// What only the product's models say.
std::string ProductTable(const SimulationResult& result) {
  MarkdownTable table({"scenario", "bound p50 / p99 / max", "likely bound", "likely covers",
                       "error beyond A/2: p99 / max", "spread p99.9 / max", "near faults: error",
                       "covers", "tightness", "steps located", "distance p50 / p99 / max, ms",
                       "false breaks a host-day", "knots/s"});
  for (const HostRow& row : result.host_rows) {
    const HostScore& score = row.scores.back();
    const double tail = score.own.Quantile(0.999);
    const auto milliseconds = [&](double share) {
      return score.step_distance.Quantile(share) / 1e6;
    };
    table.AddRow({std::string(row.scenario->name), Quantiles(score.bound),
                  Microseconds(score.likely_bound.Quantile(0.5)),
                  Percent(score.likely_covered.held, score.likely_covered.of),
                  fmt::format("{} / {}", Microseconds(score.beyond.Quantile(0.99)),
                              Microseconds(score.beyond.max())),
                  fmt::format("{} / {}", Microseconds(score.spread.Quantile(0.999)),
                              Microseconds(score.spread.max())),
                  Quantiles(score.near_error),
                  Percent(score.near_covered.held, score.near_covered.of),
                  fmt::format("{:.3g}", tail > 0 ? score.bound.Quantile(0.5) / tail : 0),
                  score.steps_located.of == 0
                      ? "-"
                      : fmt::format("{} of {}", score.steps_located.held, score.steps_located.of),
                  score.steps_located.of == 0
                      ? "-"
                      : fmt::format("{:.0f} / {:.0f} / {:.0f}", milliseconds(0.5),
                                    milliseconds(0.99), score.step_distance.max() / 1e6),
                  PerDay(score.false_breaks, score.host_seconds),
                  fmt::format("{:.3g}", static_cast<double>(score.knots) / score.host_seconds)});
  }
  return "The product alone; microseconds unless said otherwise. Tightness: the median bound by "
         "the "
         "error that 99.9 % stay within. Near faults: stamps drawn besides, a microsecond to a "
         "second from one\n\n" +
         table.ToText();
}

}  // namespace

std::string HostTables(const SimulationResult& result) {
  if (result.host_rows.empty()) return "";
  return ErrorTable(result) + "\n" + CoverageTable(result) + "\n" + ProductTable(result) + "\n";
}

}  // namespace neurontrace
