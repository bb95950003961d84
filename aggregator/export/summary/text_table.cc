// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/summary/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lib/base/clean_text.h"

namespace neurontrace {
namespace {

constexpr std::string_view kIndent = "  ";
// Columns of space between two cells, the mark of a cut text, and the least width of the first
// column.
constexpr size_t kGap = 2;
constexpr std::string_view kCut = "..";
constexpr size_t kFirstMin = 16;

// Counts characters rather than bytes. A terminal shows each in one column, except in scripts that
// nobody names workers in.
size_t Columns(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Cuts between characters, so that the table stays valid UTF-8.
std::string CutTo(const std::string& text, size_t columns) {
  if (Columns(text) <= columns) return text;
  std::string cut;
  std::string_view rest = text;
  for (size_t i = kCut.size(); i < columns; ++i) {
    const size_t bytes = std::max<size_t>(Utf8SequenceBytes(rest), 1);
    cut += rest.substr(0, bytes);
    rest.remove_prefix(bytes);
  }
  return cut + std::string(kCut);
}

// Returns three significant digits of a value below 1,000.
std::string ThreeDigits(double value) {
  // The limits are where rounding would add a digit.
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

// Divides by 1,000 until the value is below `limit` or the units are exhausted. The first unit has
// no fractions.
template <size_t N>
std::string Scaled(double value, const std::array<std::string_view, N>& units, double limit) {
  size_t unit = 0;
  while (unit + 1 < N && value >= limit) {
    value /= 1'000;
    ++unit;
  }
  return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", value) : ThreeDigits(value),
                     units[unit]);
}

}  // namespace

void TextTable::AppendTo(std::string& out) const {
  std::vector<size_t> widths(rows_.front().size());
  size_t others = kIndent.size();
  for (size_t column = 0; column < widths.size(); ++column) {
    for (const auto& row : rows_) {
      widths[column] = std::max(widths[column], Columns(row[column]));
    }
    if (column > 0) others += kGap + widths[column];
  }
  // The first column keeps a minimum even if the line becomes too long: a name must stay
  // recognisable.
  const size_t room = others + kFirstMin > kWidthMax ? kFirstMin : kWidthMax - others;
  widths[0] = std::min(widths[0], room);
  for (const auto& row : rows_) {
    std::string line(kIndent);
    const std::string first = CutTo(row[0], widths[0]);
    line += first + std::string(widths[0] - Columns(first), ' ');
    for (size_t column = 1; column < row.size(); ++column) {
      line += std::string(kGap + widths[column] - Columns(row[column]), ' ') + row[column];
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + '\n';
  }
}

void AppendWrapped(std::string_view text, std::string& out) {
  const size_t room = TextTable::kWidthMax - 2 * kIndent.size();
  std::string_view indent = kIndent;
  while (!text.empty()) {
    size_t end = text.size();
    // Breaks at the last space that fits; a word longer than a line gets a line of its own.
    if (end > room) {
      end = text.rfind(' ', room);
      if (end == std::string_view::npos || end == 0) end = std::min(text.find(' '), text.size());
    }
    out += indent;
    out += text.substr(0, end);
    out += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
    indent = "    ";
  }
}

std::string CountText(uint64_t count) {
  std::string text = fmt::format("{}", count);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string DurationText(uint64_t ns) {
  static constexpr std::array<std::string_view, 4> kUnits = {"ns", "us", "ms", "s"};
  return Scaled(static_cast<double>(ns), kUnits, 999.5);
}

std::string BytesText(double bytes) {
  static constexpr std::array<std::string_view, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  return Scaled(bytes, kUnits, 999.5);
}

std::string ShareText(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace neurontrace
