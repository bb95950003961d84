// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/busy_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "aggregator/view/span_answer.h"
#include "lib/base/json_writer.h"

namespace neurontrace {
namespace {

// The width of a column, which need not be a whole number of nanoseconds.
double ColumnNs(const BusyMap::Window& window) {
  return static_cast<double>(window.to_ns - window.from_ns) / window.columns;
}

std::string_view NameOfMetric(BusyMap::Metric metric) {
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

size_t ColumnOf(const BusyMap::Window& window, uint64_t at_ns) {
  const double column = static_cast<double>(at_ns - window.from_ns) / ColumnNs(window);
  return std::min<size_t>(static_cast<size_t>(column), window.columns - 1);
}

}  // namespace

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
  for (size_t column = ColumnOf(window, at_ns); at_ns < stop_ns; ++column) {
    const auto column_end_ns =
        column + 1 >= window.columns
            ? window.to_ns
            : window.from_ns +
                  static_cast<uint64_t>(ColumnNs(window) * static_cast<double>(column + 1));
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
    if (begins_inside) row.events[ColumnOf(window_, record.start_ns)] += 1;
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

void BusyMap::AppendRow(const TimelineStream& stream, const Row& row, std::string& out) const {
  std::vector<float> values(window_.columns, std::numeric_limits<float>::quiet_NaN());
  const bool has_hardware = !row.hardware.ns.empty();
  const std::vector<float>& covered = has_hardware ? row.hardware.ns : row.other.ns;
  // The index has the first and the last time of the stream, as an idle window has no event.
  const auto known_from = stream.description.events == 0 || stream.clock == nullptr
                              ? UINT64_MAX
                              : stream.clock->ToReference(stream.description.first_timestamp_ns);
  const auto known_to =
      stream.clock == nullptr ? 0 : stream.clock->ToReference(stream.description.last_timestamp_ns);
  for (size_t column = 0; column < values.size(); ++column) {
    const auto begin =
        window_.from_ns + static_cast<uint64_t>(ColumnNs(window_) * static_cast<double>(column));
    if (begin > known_to || begin + ColumnNs(window_) < known_from) continue;
    if (metric_ == Metric::kEvents) {
      values[column] = row.events.empty() ? 0 : row.events[column];
    } else {
      values[column] =
          covered.empty() ? 0
                          : std::min(1.0f, covered[column] / static_cast<float>(ColumnNs(window_)));
    }
  }
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

// The answer is made here, because the streams do not outlive the reading.
absl::Status BusyMap::Finish(ExportSummary& summary) {
  JsonWriter json;
  json.Open('{')
      .Member("metric", NameOfMetric(metric_))
      .Member("unit", metric_ == Metric::kEvents ? "events" : "share")
      .Member("from", fmt::format("{}", window_.from_ns))
      .Member("to", fmt::format("{}", window_.to_ns))
      .Member("columns", window_.columns)
      .Member("complete", summary.counts.unreadable_chunks == 0)
      .Key("steps")
      .Json("null")
      .Key("rows")
      .Open('[');
  for (const uint32_t stream : rows_.streams()) {
    const TimelineStream& about = header_->streams[stream];
    json.Open('{').Member("stream", about.description.number).Key("gid");
    about.rank.worker_gid ? json.Value(*about.rank.worker_gid) : json.Json("null");
    json.Close('}');
  }
  const std::string header = json.Close(']').Close('}').Take();
  answer_ = ViewFrame(header);
  for (const uint32_t stream : rows_.streams()) {
    AppendRow(header_->streams[stream], map_[stream], answer_);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
