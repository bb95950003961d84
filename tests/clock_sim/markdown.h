// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/clock_sim/log_histogram.h"

namespace neurontrace {

// A Markdown table, with columns as wide as their widest cell.
class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> header) : rows_({std::move(header)}) {}

  void AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Nanoseconds as microseconds with two or three digits, from 10 ms on as milliseconds.
std::string Microseconds(double ns);
// "p50 / p99 / max" in microseconds; "-" without any.
std::string Quantiles(const LogHistogram& histogram);
// Of a hundred, never rounded up to 100.
std::string Percent(uint64_t held, uint64_t of);

}  // namespace neurontrace
