// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/busy_map.h"

#include <algorithm>

namespace neurontrace {

std::string_view NameOf(BusyMap::Metric metric) {
  switch (metric) {
    case BusyMap::Metric::kBusy:
      return "busy";
    case BusyMap::Metric::kWait:
      return "wait";
    case BusyMap::Metric::kEvents:
      break;
  }
  return "events";
}

BusyMap::BusyMap(Metric metric, const Window& window) : metric_(metric), window_(window) {}

absl::Status BusyMap::Begin(const TimelineHeader& header) {
  BeginRows(header);
  map_.resize(header.streams.size());
  return absl::OkStatus();
}

// Spans come in the order of their starts, so what lies before `until_ns` is counted already.
void BusyMap::Cover::Add(const Window& window, uint64_t begin_ns, uint64_t end_ns) {
  uint64_t at_ns = std::max({begin_ns, until_ns, window.from_ns});
  const uint64_t stop_ns = std::min(end_ns, window.to_ns);
  if (at_ns >= stop_ns) return;
  if (ns.empty()) ns.resize(window.columns);
  until_ns = stop_ns;
  for (size_t column = window.ColumnOf(at_ns); at_ns < stop_ns; ++column) {
    const auto column_end_ns =
        column + 1 >= window.columns
            ? window.to_ns
            : window.from_ns +
                  static_cast<uint64_t>(window.column_ns() * static_cast<double>(column + 1));
    const uint64_t until = std::min(stop_ns, std::max(column_end_ns, at_ns + 1));
    ns[std::min<size_t>(column, window.columns - 1)] += static_cast<float>(until - at_ns);
    at_ns = until;
  }
}

absl::Status BusyMap::WriteEvent(const TimelineRecord& record, uint64_t,
                                 const Placement& placement) {
  Row& row = map_[record.stream];
  row.first_ns = std::min(row.first_ns, record.start_ns);
  row.last_ns = std::max(row.last_ns, record.end_ns);
  const bool begins_inside = record.start_ns >= window_.from_ns && record.start_ns < window_.to_ns;
  if (metric_ == Metric::kEvents) {
    if (row.events.empty()) row.events.resize(window_.columns);
    if (begins_inside) row.events[window_.ColumnOf(record.start_ns)] += 1;
    return absl::OkStatus();
  }
  // The length of a span without its stop or its start is not known.
  if ((record.flags & (kInvalidLength | kStartLost)) != 0) return absl::OkStatus();
  if (metric_ == Metric::kWait) {
    const DerivedType type = fields_.Of(*record.shape).type;
    if (type != DerivedType::kCollective && type != DerivedType::kHostBarrier) {
      return absl::OkStatus();
    }
  }
  const bool is_hardware =
      metric_ == Metric::kBusy && rows_.row(placement.row).source == RowSource::kHardware;
  (is_hardware ? row.hardware : row.other).Add(window_, record.start_ns, record.end_ns);
  return absl::OkStatus();
}

void BusyMap::FillRow(const TimelineStream& stream, const Row& row, size_t matrix_row) {
  const bool has_hardware = !row.hardware.ns.empty();
  const std::vector<float>& covered = has_hardware ? row.hardware.ns : row.other.ns;
  const double column_ns = window_.column_ns();
  // The index has the first and the last time of the stream, as an idle window has no event.
  const auto known_from = stream.description.events == 0 || stream.clock == nullptr
                              ? UINT64_MAX
                              : stream.clock->ToReference(stream.description.first_timestamp_ns);
  const auto known_to =
      stream.clock == nullptr ? 0 : stream.clock->ToReference(stream.description.last_timestamp_ns);
  for (size_t column = 0; column < window_.columns; ++column) {
    const auto begin =
        window_.from_ns + static_cast<uint64_t>(column_ns * static_cast<double>(column));
    if (begin > known_to || begin + column_ns < known_from) continue;
    float value = 0;
    if (metric_ == Metric::kEvents) {
      if (!row.events.empty()) value = row.events[column];
    } else if (!covered.empty()) {
      value = std::min(1.0f, covered[column] / static_cast<float>(column_ns));
    }
    matrix_->Put(matrix_row, column, value);
  }
}

// The rows are described here, because the streams do not outlive the reading.
absl::Status BusyMap::Finish(ExportSummary& summary) {
  answer_ = {.metric = NameOf(metric_),
             .unit = metric_ == Metric::kEvents ? "events" : "share",
             .window = window_,
             .is_complete = summary.counts.unreadable_chunks == 0};
  matrix_.emplace(rows_.streams().size(), window_.columns, /*has_bounds=*/false);
  for (const uint32_t stream : rows_.streams()) {
    FillRow(header_->streams[stream], map_[stream], answer_.rows.size());
    answer_.rows.push_back(DescribeHeatRow(*header_, stream));
  }
  if (!matrix_->HasValues()) answer_.reason = "no rank has an event in this window";
  return absl::OkStatus();
}

}  // namespace neurontrace
