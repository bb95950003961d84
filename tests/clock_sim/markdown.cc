// SPDX-License-Identifier: Apache-2.0
#include "tests/clock_sim/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace neurontrace {

std::string MarkdownTable::ToText() const {
  std::vector<size_t> widths(rows_.front().size(), 3);
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      text += fmt::format("| {:<{}} ", rows_[r][i], widths[i]);
    }
    text += "|\n";
    if (r > 0) continue;
    for (const size_t width : widths) text += fmt::format("| {} ", std::string(width, '-'));
    text += "|\n";
  }
  return text;
}

std::string Microseconds(double ns) {
  const double us = ns / 1e3;
  if (us > 1e20) return "-";
  if (us >= 1e7) return fmt::format("{:.1f} s", us / 1e6);
  if (us >= 1e4) return fmt::format("{:.0f} ms", us / 1e3);
  if (us >= 100) return fmt::format("{:.0f}", us);
  return us >= 10 ? fmt::format("{:.1f}", us) : fmt::format("{:.2f}", us);
}

std::string Quantiles(const LogHistogram& histogram) {
  if (histogram.count() == 0) return "-";
  return fmt::format("{} / {} / {}", Microseconds(histogram.Quantile(0.5)),
                     Microseconds(histogram.Quantile(0.99)), Microseconds(histogram.max()));
}

std::string Percent(uint64_t held, uint64_t of) {
  if (of == 0) return "-";
  if (held == of) return "100";
  const double percent = 100.0 * static_cast<double>(held) / static_cast<double>(of);
  return fmt::format("{:.4g}", std::min(percent, 99.9999));
}

}  // namespace neurontrace
