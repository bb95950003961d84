// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// Rows of text for a terminal: the first column is at the left and is cut to what the others
// leave of kWidthMax, the others are at the right of theirs. Texts must be fit for a terminal
// (CleanText). A plain value.
class TextTable {
 public:
  static constexpr size_t kWidthMax = 100;

  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}

  // As many cells as the header has.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  size_t rows() const { return rows_.size() - 1; }
  void AppendTo(std::string& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// A sentence on as many lines as it needs.
void AppendWrapped(std::string_view text, std::string& out);

// "1,234,567"
std::string CountText(uint64_t count);
// "812 ns", "1.23 us", "45.6 ms", "12.3 s": three digits.
std::string DurationText(uint64_t ns);
// "1.23 GB": three digits, thousands.
std::string BytesText(double bytes);
// "87.3 %"
std::string ShareText(double share);

}  // namespace neurontrace
