// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/name_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/export/json/json_text.h"
#include "lib/base/json_writer.h"
#include "lib/base/time_units.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

NameSummary::NameSummary(By by, const Window& window) : by_(by), window_(window) {}

absl::Status NameSummary::Begin(const TimelineHeader& header) {
  BeginRows(header);
  attributes_.Begin(header);
  return absl::OkStatus();
}

size_t NameSummary::LineOf(const TimelineRecord& record) {
  std::string name;
  if (by_ == By::kName) {
    name = attributes_.NameOf(record);
  } else {
    const TimelineStream& stream = header_->streams[record.stream];
    name = stream.rank.label.empty() ? ToString(stream.description.identity) : stream.rank.label;
  }
  const auto known = line_of_.find(name);
  if (known != line_of_.end()) return known->second;
  if (lines_.size() >= limits::kViewSummaryRowsMax) return lines_.size() - 1;
  const bool is_last = lines_.size() == limits::kViewSummaryRowsMax - 1;
  lines_.push_back({.name = is_last ? "(other)" : name});
  if (!is_last) line_of_.emplace(std::move(name), lines_.size() - 1);
  return lines_.size() - 1;
}

void NameSummary::CountSelf(uint32_t row, const TimelineRecord& record, size_t line) {
  if (row >= open_.size()) open_.resize(row + 1);
  std::vector<OpenSpan>& open = open_[row];
  while (!open.empty() && open.back().end_ns <= record.start_ns) open.pop_back();
  const uint64_t inside_ns = SubtractSaturating(std::min(record.end_ns, window_.to_ns),
                                                std::max(record.start_ns, window_.from_ns));
  lines_[line].self_ns = AddSaturating(lines_[line].self_ns, inside_ns);
  if (!open.empty()) {
    // A span that overlaps its parent's end takes from it only what is inside.
    const uint64_t shared_ns =
        SubtractSaturating(std::min({record.end_ns, window_.to_ns, open.back().end_ns}),
                           std::max(record.start_ns, window_.from_ns));
    uint64_t& parent_ns = lines_[open.back().line].self_ns;
    parent_ns = SubtractSaturating(parent_ns, shared_ns);
  }
  if (open.size() < limits::kViewDepthMax) open.push_back({record.end_ns, line});
}

absl::Status NameSummary::WriteEvent(const TimelineRecord& record, uint64_t,
                                     const Placement& placement) {
  ++events_;
  const size_t line = LineOf(record);
  if (record.kind != RecordKind::kSpan) {
    ++lines_[line].instants;
    return absl::OkStatus();
  }
  if ((record.flags & (kInvalidLength | kStartLost | kOpen)) != 0) {
    ++without_length_;
    return absl::OkStatus();
  }
  lines_[line].durations.Add(record.end_ns - record.start_ns);
  CountSelf(placement.row, record, line);
  return absl::OkStatus();
}

std::string NameSummary::Json(bool is_complete) const {
  std::vector<const Line*> order;
  for (const Line& line : lines_) order.push_back(&line);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const Line* line) { return line->durations.sum_ns(); });
  const auto number = [](uint64_t value) { return fmt::format("{}", value); };
  JsonWriter json;
  json.Open('{').Key("rows").Open('[');
  for (const Line* line : order) {
    const DurationSketch& durations = line->durations;
    std::string name;
    AppendAsJsonString(line->name, name);
    json.Open('{').Key("name").Json(name);
    json.Member("count", number(durations.count() + line->instants))
        .Member("total_ns", number(durations.sum_ns()))
        .Member("self_ns", number(line->self_ns))
        .Member("p50_ns", number(durations.QuantileNs(0.5)))
        .Member("p99_ns", number(durations.QuantileNs(0.99)))
        .Member("min_ns", number(durations.min_ns()))
        .Member("max_ns", number(durations.max_ns()))
        .Close('}');
  }
  json.Close(']')
      .Member("events", number(events_))
      .Member("without_length", number(without_length_))
      .Member("complete", is_complete)
      .Close('}');
  return json.Take();
}

}  // namespace neurontrace
