// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Rows of text for a terminal. The first column is aligned left and cut to what the others leave of
// kWidthMax; the others are aligned right. Texts must be safe for a terminal (CleanText). Used by
// SummaryExporter alone. A plain value; the functions below are pure.
class TextTable {
 public:
  static constexpr size_t kWidthMax = 100;

  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  // Requires as many cells as the header has.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  size_t rows() const { return rows_.size() - 1; }
  // Appends the header and all rows, one line each.
  void AppendTo(std::string& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// Appends a sentence on as many lines as it needs.
void AppendWrapped(std::string_view text, std::string& out);

// Returns "1,234,567".
std::string CountText(uint64_t count);
// Returns three significant digits with a unit: "812 ns", "1.23 us", "45.6 ms", "12.3 s".
std::string DurationText(uint64_t ns);
// Returns three significant digits with a decimal unit: "1.23 GB".
std::string BytesText(double bytes);
// Returns "87.3 %" for 0.873.
std::string ShareText(double share);

}  // namespace neurontrace
