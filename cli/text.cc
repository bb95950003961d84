// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ctime>

#include "cli/terminal_region.h"
#include "lib/base/clean_text.h"
#include "lib/base/status.h"

namespace neurontrace::cli {
namespace {

// Columns of a table that does not fit are narrowed down to this width, which is that of an
// instance's id.
constexpr size_t kColumnKept = 20;
constexpr size_t kCellBytesMax = 16 * 1'024;

// Returns the columns on a terminal for UTF-8 without wide characters: the bytes that do not
// continue a character.
size_t Width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Returns whether a cell contains only a number, a percentage, or "-" for none.
bool LooksNumeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789,.%-") == std::string_view::npos;
}

// Appends one line of a table. Blanks at its end are removed, so that copied lines have none.
void AppendRow(std::string& out, const std::vector<std::string>& cells,
               const std::vector<size_t>& widths, const std::vector<bool>& right, size_t columns) {
  std::string line;
  for (size_t i = 0; i < widths.size(); ++i) {
    const std::string cell = i < cells.size() ? CutToColumns(cells[i], widths[i]) : "";
    const std::string padding(widths[i] - std::min(widths[i], Width(cell)), ' ');
    if (i != 0) line += "  ";
    line += right[i] ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += (columns == 0 ? line : CutToColumns(line, columns)) + "\n";
}

// Narrows the widest columns until the table fits `columns`, or no column is wider than
// kColumnKept. Its cost is the excess times the number of columns.
void FitColumns(size_t columns, std::vector<size_t>& widths) {
  size_t total = 2 * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  while (total > columns) {
    const auto widest = std::max_element(widths.begin(), widths.end());
    if (*widest <= kColumnKept) return;
    --*widest;
    --total;
  }
}

// Converts with protobuf's own JSON printer, so that scripts may use any proto3 library.
std::string ToJson(const google::protobuf::Message& message, bool whitespace) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = whitespace;
  // Fields with their default are printed as well, so that a script finds every key.
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) return fmt::format("{{\"error\": \"{}\"}}\n", status.ToString());
  if (text.empty() || text.back() != '\n') text += '\n';
  return text;
}

}  // namespace

std::string FormatTable(const std::vector<std::string>& header,
                        const std::vector<std::vector<std::string>>& given, size_t columns) {
  // Cells come from other programs, and one that moves the cursor would forge lines.
  std::vector<std::vector<std::string>> rows = given;
  for (auto& row : rows) {
    for (std::string& cell : row) cell = CleanText(cell, kCellBytesMax);
  }
  std::vector<size_t> widths;
  // A table without rows keeps its headers left-aligned.
  std::vector<bool> right(header.size(), !rows.empty());
  for (const auto& name : header) widths.push_back(Width(name));
  for (const auto& row : rows) {
    for (size_t i = 0; i < header.size() && i < row.size(); ++i) {
      widths[i] = std::max(widths[i], Width(row[i]));
      if (!LooksNumeric(row[i])) right[i] = false;
    }
  }
  if (columns != 0) FitColumns(columns, widths);
  std::string out;
  AppendRow(out, header, widths, right, columns);
  for (const auto& row : rows) AppendRow(out, row, widths, right, columns);
  return out;
}

std::string FormatJson(const google::protobuf::Message& message) {
  return ToJson(message, /*whitespace=*/true);
}

std::string FormatJsonLine(const google::protobuf::Message& message) {
  return ToJson(message, /*whitespace=*/false);
}

std::string FormatDuration(uint64_t ns) {
  if (ns == 0) return "-";
  // A value that would be rounded to 1000 of a unit is shown as 1 of the next.
  if (ns < 999'950) return fmt::format("{:.1f} us", static_cast<double>(ns) / 1e3);
  if (ns < 999'500'000) return fmt::format("{:.0f} ms", static_cast<double>(ns) / 1e6);
  if (ns < 120'000'000'000) return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9);
  const uint64_t seconds = ns / 1'000'000'000;
  if (seconds < 7'200) return fmt::format("{} min {} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {} min", seconds / 3'600, seconds / 60 % 60);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  // Inserts from the right, so that earlier positions stay valid.
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string FormatCounted(uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", FormatCount(count), one)
                      : fmt::format("{} {}", FormatCount(count), many);
}

std::string FormatLost(uint64_t count, bool is_unknown) {
  if (!is_unknown) return FormatCount(count);
  return count == 0 ? "unknown" : FormatCount(count) + " or more";
}

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatTime(uint64_t realtime_ns) {
  if (realtime_ns == 0) return "-";
  const time_t seconds = static_cast<time_t>(realtime_ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%SZ", &parts);
  return text;
}

absl::StatusOr<uint64_t> ParseDuration(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double scale = 0;
  if (unit == "s" || (unit.empty() && value == 0)) scale = 1e9;
  if (unit == "us") scale = 1e3;
  if (unit == "ms") scale = 1e6;
  if (unit == "m" || unit == "min") scale = 60e9;
  if (unit == "h") scale = 3600e9;
  if (unit == "d") scale = 86400e9;
  const double ns = value * scale;
  if (error != std::errc() || scale == 0 || !(ns >= 0) || ns > 1e18) {
    return InvalidArgument(
        "'{}' is not a duration; write it with a unit, like 30s, 500ms, 2m or 1h", text);
  }
  return static_cast<uint64_t>(std::llround(ns));
}

std::vector<std::string> SplitList(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) {
    size_t from = 0;
    while (from <= value.size()) {
      const size_t comma = std::min(value.find(',', from), value.size());
      std::string item = value.substr(from, comma - from);
      item.erase(0, item.find_first_not_of(' '));
      item.erase(item.find_last_not_of(' ') + 1);
      if (!item.empty()) out.push_back(std::move(item));
      from = comma + 1;
    }
  }
  return out;
}

}  // namespace neurontrace::cli
