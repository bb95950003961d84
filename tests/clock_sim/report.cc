// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/report.h"

#include <fmt/format.h>

#include <string_view>

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

// The texts here are our own: all that needs an escape is quotes and backslashes.
std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string Array(const std::vector<std::string>& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "\n" : ",\n") + items[i];
  return text + "]";
}

std::string Distribution(const LogHistogram& histogram) {
  if (histogram.max() >= 1e29) return "null";  // no bound
  return fmt::format(R"({{"p50": {:.1f}, "p99": {:.1f}, "p99_9": {:.1f}, "max": {:.1f}}})",
                     histogram.Quantile(0.5), histogram.Quantile(0.99), histogram.Quantile(0.999),
                     histogram.max());
}

std::string Counts(const Share& share) {
  return fmt::format(R"({{"held": {}, "of": {}}})", share.held, share.of);
}

std::string HostScores(std::string_view method, const HostScore& score) {
  return fmt::format(
      R"({{"method": {}, "own": {}, "pair": {}, "spread": {}, "bound": {}, "likely_bound": {}, )"
      R"("covered": {}, "likely_covered": {}, "pairs_covered": {}, "steps_located": {}, )"
      R"("false_breaks": {}, "gave_up": {}, "knots": {}, "host_seconds": {:.0f}}})",
      Quoted(method), Distribution(score.own), Distribution(score.pair), Distribution(score.spread),
      Distribution(score.bound), Distribution(score.likely_bound), Counts(score.covered),
      Counts(score.likely_covered), Counts(score.pairs_covered), Counts(score.steps_located),
      score.false_breaks, score.gave_up, score.knots, score.host_seconds);
}

std::string DeviceScores(std::string_view method, const DeviceScore& score) {
  return fmt::format(
      R"({{"method": {}, "error": {}, "bound": {}, "likely_bound": {}, "covered": {}, )"
      R"("likely_covered": {}, "brackets": {}, "ascends": {}}})",
      Quoted(method), Distribution(score.error), Distribution(score.bound),
      Distribution(score.likely_bound), Counts(score.covered), Counts(score.likely_covered),
      Counts(score.brackets), Counts(score.ascends));
}

template <typename Row, typename Write>
std::string Scenario(const Row& row, const std::vector<std::string>& methods, const Write& write) {
  std::vector<std::string> scores;
  for (size_t i = 0; i < methods.size(); ++i) scores.push_back(write(methods[i], row.scores[i]));
  return fmt::format(R"({{"scenario": {}, "words": {}, "methods": {}}})",
                     Quoted(row.scenario->name), Quoted(row.scenario->words), Array(scores));
}

}  // namespace

std::string DeviceTable(const SimulationResult& result) {
  if (result.device_rows.empty()) return "";
  std::vector<std::string> header = {"scenario"};
  for (const std::string& method : result.device_methods) {
    header.push_back(method);
    header.push_back("brackets broken");
  }
  header.insert(header.end(), {"bound / likely", "covers / likely", "ascends"});
  MarkdownTable table(std::move(header));
  for (const DeviceRow& row : result.device_rows) {
    std::vector<std::string> cells = {
        fmt::format("{} {}", row.scenario->name, row.scenario->words)};
    for (const DeviceScore& score : row.scores) {
      cells.push_back(Quantiles(score.error));
      cells.push_back(
          fmt::format("{} of {}", score.brackets.of - score.brackets.held, score.brackets.of));
    }
    const DeviceScore& product = row.scores.back();
    cells.push_back(fmt::format("{} / {}", Microseconds(product.bound.Quantile(0.5)),
                                Microseconds(product.likely_bound.Quantile(0.5))));
    cells.push_back(fmt::format("{} / {}", Percent(product.covered.held, product.covered.of),
                                Percent(product.likely_covered.held, product.likely_covered.of)));
    cells.push_back(Percent(product.ascends.held, product.ascends.of));
    table.AddRow(std::move(cells));
  }
  return "Error of hardware events on their host's clock, p50 / p99 / max in us; the last three "
         "columns are of the last method\n\n" +
         table.ToText() + "\n";
}

std::string HostTables(const SimulationResult& result) {
  if (result.host_rows.empty()) return "";
  return ErrorTable(result) + "\n" + CoverageTable(result) + "\n" + ProductTable(result) + "\n";
}

std::string JsonReport(const SimulationResult& result, const std::vector<GoalCheck>& checks) {
  std::vector<std::string> hosts;
  for (const HostRow& row : result.host_rows) {
    hosts.push_back(Scenario(row, result.host_methods, HostScores));
  }
  std::vector<std::string> devices;
  for (const DeviceRow& row : result.device_rows) {
    devices.push_back(Scenario(row, result.device_methods, DeviceScores));
  }
  std::vector<std::string> goals;
  for (const GoalCheck& check : checks) {
    goals.push_back(fmt::format(R"({{"goal": {}, "asked": {}, "measured": {}, "met": {}}})",
                                Quoted(check.goal), Quoted(check.asked), Quoted(check.measured),
                                check.met));
  }
  return fmt::format(
      "{{\"first_seed\": {}, \"seeds\": {},\n\"hosts\": {},\n\"devices\": {},\n\"goals\": {}}}\n",
      result.options.first_seed, result.options.seeds, Array(hosts), Array(devices), Array(goals));
}

}  // namespace neurontrace
