// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/export/exporter.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

// The stretch of time that a heat map shows, in reference nanoseconds, and its columns. A plain
// value. Requires from_ns < to_ns.
struct HeatWindow {
  uint64_t from_ns = 0;
  uint64_t to_ns = 1;
  uint32_t columns = 400;

  bool Contains(uint64_t at_ns) const { return at_ns >= from_ns && at_ns < to_ns; }
  // The width of a column, which need not be a whole number of nanoseconds.
  double column_ns() const { return static_cast<double>(to_ns - from_ns) / columns; }
  // Requires that the window contains the moment.
  size_t ColumnOf(uint64_t at_ns) const;
};

// How the page wants a heat map. A plain value.
struct HeatShape {
  // Lines of pixels. More rows than these are reduced: each line shows the worst of its rows.
  uint32_t lines_max = limits::kViewHeatLinesMax;
  // Sorts rows by their worst value, the largest first; otherwise they keep their order.
  bool is_worst_first = false;
};

// One rank (or other stream) of a heat map. A plain value.
struct HeatRow {
  uint32_t stream = 0;  // StreamDescription::number
  std::optional<int64_t> gid;
  // Of its instance's clock; nullopt if it is not known.
  std::optional<uint64_t> bound_ns;
};
// Describes the stream with this index into `header.streams`.
HeatRow DescribeHeatRow(const TimelineHeader& header, uint32_t stream);
// Appends a row for each core, in the order of display. Returns the row of each stream, or
// kNoHeatRow.
inline constexpr uint32_t kNoHeatRow = UINT32_MAX;
std::vector<uint32_t> AddCoreRows(const TimelineHeader& header, std::vector<HeatRow>& rows);

// The columns of a heat map by step. A plain value; each list has one element for each column.
struct HeatSteps {
  // The number of the column's first step.
  std::vector<std::string> first;
  uint64_t steps_per_column = 1;
  // When its steps begin and end on any rank; both 0 if that is not known.
  std::vector<uint64_t> begin_ns;
  std::vector<uint64_t> end_ns;
  // "framework" or "barrier".
  std::string_view source;
};

// Values by row and column. A cell that several values fall into keeps the worst, and is not a
// number until one does. Used by one thread at a time.
//
// The worst value is the largest. If values have bounds, one that is certainly above 0 comes before
// one that is not, and that before one that is certainly below 0: a large difference that the
// clocks may have made must not hide a smaller one that is real.
class HeatMatrix {
 public:
  // `has_bounds` is whether values have bounds.
  HeatMatrix(size_t rows, uint32_t columns, bool has_bounds);

  // Returns how many of the `wanted` columns a matrix of so many rows has within kViewHeatCellsMax.
  static uint32_t ColumnsWithinLimit(size_t rows, uint32_t wanted);

  // Does nothing if the value is not a number. A bound that is not a number is unknown: then the
  // value is never certain. Ignored if the matrix has none.
  void Put(size_t row, size_t column, float value, float bound = 0);
  // Does so for every column that [begin_ns, end_ns) touches, as far as it is in the window.
  void PutStretch(size_t row, const HeatWindow& window, uint64_t begin_ns, uint64_t end_ns,
                  float value, float bound);
  // Merges columns 0 and 1, 2 and 3, and so on: the second half becomes free.
  void MergeColumns();

  size_t rows() const { return rows_; }
  uint32_t columns() const { return columns_; }
  bool has_bounds() const { return !bounds_.empty(); }
  float value(size_t row, size_t column) const { return values_[row * columns_ + column]; }
  // Returns the values of the row's first columns.
  std::span<const float> values(size_t row, uint32_t columns) const {
    return std::span(values_).subspan(row * columns_, columns);
  }
  // 0 if the matrix has no bounds.
  float bound(size_t row, size_t column) const {
    return has_bounds() ? bounds_[row * columns_ + column] : 0;
  }
  // Returns whether any cell is known.
  bool HasValues() const;

 private:
  const size_t rows_;
  const uint32_t columns_;
  std::vector<float> values_;  // row by row
  std::vector<float> bounds_;  // the same; empty: none
};

// Everything else of the answer of `heat`. A plain value. docs/formats/view_api.md defines it.
struct HeatAnswer {
  std::string_view metric;
  std::string_view unit;
  HeatWindow window;  // `columns` are those of the answer, which has at most those of the matrix
  bool is_complete = true;
  // How far from its time an event may be counted; 0: nowhere else.
  uint64_t shift_ns = 0;
  std::vector<HeatRow> rows;  // those of the matrix
  std::optional<HeatSteps> steps;
  // Why no cell is known; empty if one is.
  std::string reason;
  std::vector<std::string> warnings;
};

// Encodes the answer: a frame with a JSON header, then columns of the lines that `shape` asks for.
std::string EncodeHeat(const HeatAnswer& answer, const HeatMatrix& matrix, const HeatShape& shape);

}  // namespace neurontrace
