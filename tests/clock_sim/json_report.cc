// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/json_report.h"

#include <fmt/format.h>

#include <string_view>

namespace neurontrace {
namespace {

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
