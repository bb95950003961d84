// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/device_report.h"

#include <fmt/format.h>

#include "tests/clock_sim/markdown.h"

namespace neurontrace {

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

}  // namespace neurontrace
