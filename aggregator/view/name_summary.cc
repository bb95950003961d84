// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/name_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "aggregator/export/json/json_text.h"
#include "aggregator/view/digest.h"
#include "lib/base/json_writer.h"
#include "lib/base/time_units.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {

NameSummary::NameSummary(By by, const Window& window, DigestFeed* digests)
    : by_(by), window_(window), digests_(digests) {}

absl::Status NameSummary::Begin(const TimelineHeader& header) {
  BeginRows(header);
  attributes_.Begin(header);
  if (digests_ == nullptr) return absl::OkStatus();
  digests_->Begin(header);
  crossing_ = digests_->Crossing();
  return absl::OkStatus();
}

size_t NameSummary::LineOf(uint32_t stream, std::string_view event_name) {
  std::string name(event_name);
  if (by_ == By::kRank) {
    const TimelineStream& about = header_->streams[stream];
    name = about.rank.label.empty() ? ToString(about.description.identity) : about.rank.label;
  }
  const auto known = line_of_.find(name);
  if (known != line_of_.end()) return known->second;
  if (lines_.size() >= limits::kViewSummaryRowsMax) return lines_.size() - 1;
  const bool is_last = lines_.size() == limits::kViewSummaryRowsMax - 1;
  lines_.push_back({.name = is_last ? "(other)" : name});
  if (!is_last) line_of_.emplace(std::move(name), lines_.size() - 1);
  return lines_.size() - 1;
}

void NameSummary::CountSelf(uint32_t row, uint64_t start_ns, uint64_t end_ns, size_t line) {
  if (row >= open_.size()) open_.resize(row + 1);
  std::vector<OpenSpan>& open = open_[row];
  while (!open.empty() && open.back().end_ns <= start_ns) open.pop_back();
  const auto inside_ns = [&](uint64_t until_ns) {
    return static_cast<int64_t>(
        SubtractSaturating(std::min(until_ns, window_.to_ns), std::max(start_ns, window_.from_ns)));
  };
  lines_[line].self_ns += inside_ns(end_ns);
  // A span that overlaps its parent's end takes from it only what is inside.
  if (!open.empty()) {
    lines_[open.back().line].self_ns -= inside_ns(std::min(end_ns, open.back().end_ns));
  }
  if (open.size() < limits::kViewDepthMax) open.push_back({end_ns, line});
}

absl::Status NameSummary::WriteEvent(const TimelineRecord& record, uint64_t,
                                     const Placement& placement) {
  if (digests_ != nullptr) {
    if (digests_->HasEvent(record)) return absl::OkStatus();
    AdvanceDigests(record.start_ns);
  }
  ++events_;
  const size_t line = LineOf(record.stream, attributes_.NameOf(record));
  if (record.kind != RecordKind::kSpan) {
    ++lines_[line].instants;
    return absl::OkStatus();
  }
  if ((record.flags & (kInvalidLength | kStartLost | kOpen)) != 0) {
    ++without_length_;
    return absl::OkStatus();
  }
  lines_[line].durations.Add(record.end_ns - record.start_ns);
  CountSelf(placement.row, record.start_ns, record.end_ns, line);
  return absl::OkStatus();
}

uint32_t NameSummary::RowOfCrossing(const DigestedCrossing& span) {
  return rows_.NeuronRow(span.stream, span.row->thread_id, span.row->source, span.row->core);
}

void NameSummary::AdvanceDigests(uint64_t start_ns) {
  if (!has_begun_ && start_ns >= window_.from_ns) {
    has_begun_ = true;
    std::vector<DigestedEvent> incoming;
    while (const DigestedEvent* span = digests_->NextIncoming()) incoming.push_back(*span);
    std::ranges::sort(incoming, [](const DigestedEvent& a, const DigestedEvent& b) {
      return std::pair(a.start_ns, b.end_ns) < std::pair(b.start_ns, a.end_ns);
    });
    AddIncoming(incoming);
  }
  for (; crossing_at_ < crossing_.size() && crossing_[crossing_at_].start_ns < start_ns;
       ++crossing_at_) {
    const DigestedCrossing& span = crossing_[crossing_at_];
    if (!span.is_summed) continue;  // it was read
    const uint32_t row = RowOfCrossing(span);
    if (row >= open_.size()) open_.resize(row + 1);
    std::vector<OpenSpan>& open = open_[row];
    while (!open.empty() && open.back().end_ns <= span.start_ns) open.pop_back();
    if (open.size() < limits::kViewDepthMax) {
      open.push_back({span.end_ns, LineOf(span.stream, span.name->first)});
    }
  }
}

void NameSummary::AddIncoming(const std::vector<DigestedEvent>& spans) {
  for (const DigestedEvent& span : spans) {
    ++events_;
    const size_t line = LineOf(span.stream, span.name->first);
    lines_[line].durations.Add(span.end_ns - span.start_ns);
    const uint32_t row =
        rows_.NeuronRow(span.stream, span.row->thread_id, span.row->source, span.row->core);
    CountSelf(row, span.start_ns, span.end_ns, line);
  }
}

void NameSummary::AddSums(const DigestedSums& sums) {
  for (const DigestNameSums& name : sums.sums.names) {
    Line& line = lines_[LineOf(sums.stream, name.name.first)];
    events_ += name.events();
    without_length_ += name.without_length;
    line.instants += name.instants;
    line.durations.Merge(name.durations);
    line.self_ns += name.self_ns;
  }
}

// Sums have the whole length of spans that begin in their digests.
void NameSummary::ClipCrossing() {
  absl::flat_hash_map<uint32_t, std::vector<OpenSpan>> open_of;  // by row
  for (const DigestedCrossing& span : crossing_) {
    if (span.end_ns <= window_.to_ns) continue;
    std::vector<OpenSpan>& open = open_of[RowOfCrossing(span)];
    const size_t line = LineOf(span.stream, span.name->first);
    if (span.is_summed) {
      lines_[line].self_ns -= static_cast<int64_t>(span.end_ns - window_.to_ns);
      if (!open.empty()) {
        lines_[open.back().line].self_ns +=
            static_cast<int64_t>(std::min(span.end_ns, open.back().end_ns) - window_.to_ns);
      }
    }
    open.push_back({span.end_ns, line});
  }
}

absl::Status NameSummary::Finish(ExportSummary&) {
  if (digests_ == nullptr) return absl::OkStatus();
  AdvanceDigests(UINT64_MAX);
  while (const DigestedSums* sums = digests_->NextSums(UINT64_MAX)) AddSums(*sums);
  ClipCrossing();
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
        .Member("self_ns", number(static_cast<uint64_t>(std::max<int64_t>(line->self_ns, 0))))
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
      .Member("digested_chunks", digests_ == nullptr ? 0 : digests_->chunks())
      .Close('}');
  return json.Take();
}

}  // namespace neurontrace
