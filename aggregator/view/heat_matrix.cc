// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/heat_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/export/rows/row_model.h"
#include "aggregator/view/span_answer.h"
#include "lib/base/json_writer.h"

namespace neurontrace {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they are");

constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();

struct HeatCell {
  float value = kUnknown;
  float bound = 0;
};

// 2: certainly above 0, 0: certainly below, 1: neither. Comparisons with an unknown bound are
// false.
int CertaintyOf(const HeatCell& cell) {
  if (cell.value > cell.bound) return 2;
  return cell.value < -cell.bound ? 0 : 1;
}

// A cell that is not known is worse than none.
bool IsWorse(const HeatCell& cell, const HeatCell& other) {
  if (std::isnan(cell.value) || std::isnan(other.value)) return !std::isnan(cell.value);
  const int certainty = CertaintyOf(cell);
  const int other_certainty = CertaintyOf(other);
  if (certainty != other_certainty) return certainty > other_certainty;
  return cell.value > other.value;
}

// Returns the rows in the order in which they are shown. Equal ones keep theirs.
std::vector<uint32_t> OrderRows(const HeatMatrix& matrix, uint32_t columns, bool is_worst_first) {
  std::vector<uint32_t> order(matrix.rows());
  std::iota(order.begin(), order.end(), 0);
  if (!is_worst_first) return order;
  std::vector<HeatCell> worst(matrix.rows());
  for (size_t row = 0; row < matrix.rows(); ++row) {
    for (size_t column = 0; column < columns; ++column) {
      const HeatCell cell{matrix.value(row, column), matrix.bound(row, column)};
      if (IsWorse(cell, worst[row])) worst[row] = cell;
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return IsWorse(worst[a], worst[b]); });
  return order;
}

// Returns the first row of each line, and behind them the number of rows.
std::vector<uint32_t> DivideIntoLines(size_t rows, uint32_t lines_max) {
  const size_t lines = std::min<size_t>(rows, std::max<uint32_t>(1, lines_max));
  std::vector<uint32_t> begins;
  for (size_t line = 0; line <= lines && lines > 0; ++line) {
    begins.push_back(static_cast<uint32_t>(rows * line / lines));
  }
  return begins;
}

std::vector<std::string> AsTexts(const std::vector<uint64_t>& numbers) {
  std::vector<std::string> texts;
  for (const uint64_t number : numbers) texts.push_back(fmt::format("{}", number));
  return texts;
}

void WriteSteps(const std::optional<HeatSteps>& steps, JsonWriter& json) {
  json.Key("steps");
  if (!steps) {
    json.Json("null");
    return;
  }
  json.Value(steps->first)
      .Member("steps_per_column", steps->steps_per_column)
      .Member("step_begin_ns", AsTexts(steps->begin_ns))
      .Member("step_end_ns", AsTexts(steps->end_ns))
      .Member("step_source", steps->source);
}

std::string HeaderOf(const HeatAnswer& answer, const HeatMatrix& matrix,
                     const std::vector<uint32_t>& order, const std::vector<uint32_t>& lines) {
  JsonWriter json;
  json.Open('{')
      .Member("metric", answer.metric)
      .Member("unit", answer.unit)
      .Member("from", fmt::format("{}", answer.window.from_ns))
      .Member("to", fmt::format("{}", answer.window.to_ns))
      .Member("columns", answer.window.columns)
      .Member("complete", answer.is_complete)
      .Member("shift_ns", fmt::format("{}", answer.shift_ns))
      .Member("has_bounds", matrix.has_bounds());
  WriteSteps(answer.steps, json);
  json.Key("reason");
  answer.reason.empty() ? json.Json("null") : json.Value(answer.reason);
  json.Member("warnings", answer.warnings).Key("rows").Open('[');
  for (const uint32_t row : order) {
    const HeatRow& about = answer.rows[row];
    json.Open('{').Member("stream", about.stream).Key("gid");
    about.gid ? json.Value(*about.gid) : json.Json("null");
    json.Member("bound_known", about.bound_ns.has_value())
        .Member("bound_ns", fmt::format("{}", about.bound_ns.value_or(0)))
        .Close('}');
  }
  json.Close(']').Key("lines").Open('[');
  for (size_t line = 0; line + 1 < lines.size(); ++line) json.Value(lines[line]);
  return json.Close(']').Close('}').Take();
}

template <typename Element>
void AppendAll(std::span<const Element> elements, std::string& out) {
  out.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(Element));
}

}  // namespace

size_t HeatWindow::ColumnOf(uint64_t at_ns) const {
  assert(Contains(at_ns));
  const double column = static_cast<double>(at_ns - from_ns) / column_ns();
  return std::min<size_t>(static_cast<size_t>(column), columns - 1);
}

HeatRow DescribeHeatRow(const TimelineHeader& header, uint32_t stream) {
  const TimelineStream& about = header.streams[stream];
  HeatRow row{.stream = about.description.number, .gid = about.rank.worker_gid};
  const InstanceClock* clock =
      header.clocks == nullptr ? nullptr : header.clocks->Find(about.description.identity.worker);
  if (clock != nullptr && clock->bound_ns != kNoBound) row.bound_ns = clock->bound_ns;
  return row;
}

std::vector<uint32_t> AddCoreRows(const TimelineHeader& header, std::vector<HeatRow>& rows) {
  std::vector<uint32_t> row_of(header.streams.size(), kNoHeatRow);
  for (const uint32_t stream : DisplayOrder(header.streams)) {
    if (!header.streams[stream].description.identity.has_core()) continue;
    row_of[stream] = static_cast<uint32_t>(rows.size());
    rows.push_back(DescribeHeatRow(header, stream));
  }
  return row_of;
}

HeatMatrix::HeatMatrix(size_t rows, uint32_t columns, bool has_bounds)
    : rows_(rows), columns_(columns), values_(rows * columns, kUnknown) {
  if (has_bounds) bounds_.resize(values_.size(), kUnknown);
}

uint32_t HeatMatrix::ColumnsWithinLimit(size_t rows, uint32_t wanted) {
  const size_t most = limits::kViewHeatCellsMax / std::max<size_t>(1, rows);
  return static_cast<uint32_t>(std::clamp<size_t>(most, 1, std::max<uint32_t>(1, wanted)));
}

void HeatMatrix::Put(size_t row, size_t column, float value, float bound) {
  assert(row < rows_ && column < columns_);
  const size_t at = row * columns_ + column;
  if (!has_bounds()) bound = 0;
  if (!IsWorse({value, bound}, {values_[at], has_bounds() ? bounds_[at] : 0})) return;
  values_[at] = value;
  if (has_bounds()) bounds_[at] = bound;
}

void HeatMatrix::PutStretch(size_t row, const HeatWindow& window, uint64_t begin_ns,
                            uint64_t end_ns, float value, float bound) {
  begin_ns = std::max(begin_ns, window.from_ns);
  end_ns = std::min(end_ns, window.to_ns);
  if (begin_ns >= end_ns) return;
  const size_t last = window.ColumnOf(end_ns - 1);
  for (size_t column = window.ColumnOf(begin_ns); column <= last; ++column) {
    Put(row, column, value, bound);
  }
}

void HeatMatrix::MergeColumns() {
  const uint32_t merged = (columns_ + 1) / 2;
  for (size_t row = 0; row < rows_; ++row) {
    for (uint32_t column = 0; column < columns_; ++column) {
      const size_t at = row * columns_ + column;
      const HeatCell cell{values_[at], has_bounds() ? bounds_[at] : 0};
      // Even columns move, the others follow into the same cell.
      if (column % 2 == 0) values_[row * columns_ + column / 2] = kUnknown;
      Put(row, column / 2, cell.value, cell.bound);
    }
    std::fill_n(values_.begin() + static_cast<ptrdiff_t>(row * columns_ + merged),
                columns_ - merged, kUnknown);
  }
}

bool HeatMatrix::HasValues() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](float value) { return !std::isnan(value); });
}

// Memory beside the answer is that of one line, whatever the number of rows, unless there are
// bounds or lines of several rows.
std::string EncodeHeat(const HeatAnswer& answer, const HeatMatrix& matrix, const HeatShape& shape) {
  const uint32_t columns = answer.window.columns;
  assert(columns <= matrix.columns() && answer.rows.size() == matrix.rows());
  const std::vector<uint32_t> order = OrderRows(matrix, columns, shape.is_worst_first);
  const std::vector<uint32_t> lines = DivideIntoLines(matrix.rows(), shape.lines_max);
  // Where each line is one row, it needs no choice.
  const bool has_choice = lines.size() <= matrix.rows();
  std::string out = ViewFrame(HeaderOf(answer, matrix, order, lines));
  const size_t cells = lines.empty() ? 0 : (lines.size() - 1) * columns;
  out.reserve(out.size() +
              cells * sizeof(float) * (1 + (matrix.has_bounds() ? 1 : 0) + (has_choice ? 1 : 0)));
  std::string bounds;
  std::string chosen;
  for (size_t line = 0; line + 1 < lines.size(); ++line) {
    if (!has_choice && !matrix.has_bounds()) {
      AppendAll(matrix.values(order[line], columns), out);
      continue;
    }
    std::vector<float> line_values(columns, kUnknown);
    std::vector<float> line_bounds(columns, kUnknown);
    std::vector<uint32_t> line_chosen(columns);
    for (uint32_t at = lines[line]; at < lines[line + 1]; ++at) {
      for (uint32_t column = 0; column < columns; ++column) {
        const HeatCell cell{matrix.value(order[at], column), matrix.bound(order[at], column)};
        if (!IsWorse(cell, {line_values[column], line_bounds[column]})) continue;
        line_values[column] = cell.value;
        line_bounds[column] = cell.bound;
        line_chosen[column] = at - lines[line];
      }
    }
    AppendAll(std::span<const float>(line_values), out);
    if (matrix.has_bounds()) AppendAll(std::span<const float>(line_bounds), bounds);
    if (has_choice) AppendAll(std::span<const uint32_t>(line_chosen), chosen);
  }
  return out + bounds + chosen;
}

}  // namespace neurontrace
