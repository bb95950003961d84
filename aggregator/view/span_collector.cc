// SPDX-License-Identifier: Apache-2.0
#include "aggregator/view/span_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "absl/strings/string_view.h"

#include "aggregator/derive/shape_fields.h"
#include "aggregator/view/counter_values.h"
#include "aggregator/view/digest_feed.h"
#include "lib/trace/view_limits.h"

namespace neurontrace {
namespace {

constexpr uint32_t kNoName = UINT32_MAX;

uint64_t UnitOf(uint64_t window_ns) { return window_ns / UINT32_MAX + 1; }

// Producers name the unit of a value in its key, as we do. What has no such name has no unit.
std::string_view UnitOfCounter(std::string_view key) {
  if (key == "bytes" || key.ends_with("_bytes")) return "B";
  if (key == "percent" || key.ends_with("_percent")) return "%";
  if (key == "ns" || key.ends_with("_ns")) return "ns";
  return "";
}

std::string SourceName(RowSource source) {
  switch (source) {
    case RowSource::kHardware:
      return "hardware";
    case RowSource::kFramework:
      return "framework";
    case RowSource::kAnnotation:
      return "annotation";
    case RowSource::kRuntime:
      break;
  }
  return "runtime";
}

uint8_t FlagsOf(const TimelineRecord& record) {
  uint8_t flags = 0;
  if ((record.flags & kOpen) != 0) flags |= kViewOpen;
  if ((record.flags & kStartLost) != 0) flags |= kViewStartLost;
  if ((record.flags & kDeviceClock) != 0) flags |= kViewDeviceClock;
  if ((record.flags & kVendorClock) != 0) flags |= kViewNoBound;
  if (record.end_ns == record.start_ns) flags |= kViewInstant;
  return flags;
}

}  // namespace

SpanCollector::SpanCollector(const Window& window, DigestFeed* digests)
    : window_(window),
      digests_(digests),
      merge_ns_(std::max<uint64_t>((window.to_ns - window.from_ns) / window.pixels, 1)) {
  assert(window.to_ns > window.from_ns && window.pixels != 0);
  answer_.from_ns = window.from_ns;
  answer_.to_ns = window.to_ns;
  answer_.unit_ns = UnitOf(window.to_ns - window.from_ns);
}

absl::Status SpanCollector::Begin(const TimelineHeader& header) {
  BeginRows(header);
  attributes_.Begin(header);
  if (digests_ != nullptr) digests_->Begin(header);
  return absl::OkStatus();
}

absl::Status SpanCollector::Finish(ExportSummary& summary) {
  if (digests_ != nullptr) AddDigestedBefore(UINT64_MAX, 0);
  answer_.chunks_read = summary.progress.chunks_read;
  answer_.unreadable_chunks = summary.counts.unreadable_chunks;
  answer_.warnings = summary.warnings;
  if (coarsened_ > 0) {
    answer_.cut = fmt::format("drawn at 1/{} of the resolution: too many spans for one answer",
                              uint64_t{1} << coarsened_);
  }
  if (events_without_row_ > 0) {
    answer_.cut +=
        fmt::format("{}{} events on rows beyond the first {} are not drawn",
                    answer_.cut.empty() ? "" : "; ", events_without_row_, limits::kViewRowsMax);
  }
  return absl::OkStatus();
}

SpanRow* SpanCollector::RowAt(uint32_t row) {
  if (row >= states_.size()) states_.resize(row + 1);
  RowState& state = states_[row];
  if (state.answer_row != UINT32_MAX) return &answer_.rows[state.answer_row];
  if (answer_.rows.size() >= limits::kViewRowsMax) return nullptr;
  state.answer_row = static_cast<uint32_t>(answer_.rows.size());
  const ExportRow& about = rows_.row(row);
  answer_.rows.push_back({.stream = header_->streams[about.stream].description.number,
                          .id = ViewRowId(rows_.process(about.process).label, about.name),
                          .name = about.name,
                          .source = SourceName(about.source),
                          .order = about.order});
  return &answer_.rows.back();
}

// Names of framework events are texts of their own. All others are the shape's event type, so that
// no name has to be hashed for them.
uint16_t SpanCollector::NameNumber(const TimelineRecord& record) {
  const auto look_up = [&] {
    return NameNumber(attributes_.NameOf(record), attributes_.CategoryOf(record));
  };
  const uint64_t shape = record.shape->number;
  if (attributes_.is_framework(record) || shape >= ShapeFieldTable::kShapesMax) return look_up();
  if (shape >= shape_names_.size()) shape_names_.resize(shape + 1, kNoName);
  if (shape_names_[shape] == kNoName) shape_names_[shape] = look_up();
  return static_cast<uint16_t>(shape_names_[shape]);
}

uint16_t SpanCollector::NameNumber(std::string_view name, std::string_view category) {
  const auto known = name_numbers_.find(absl::string_view(name.data(), name.size()));
  if (known != name_numbers_.end()) return known->second;
  if (answer_.names.size() >= limits::kViewNamesMax) return limits::kViewNamesMax - 1;
  const bool is_last = answer_.names.size() == limits::kViewNamesMax - 1;
  const auto [number, is_new] = category_numbers_.try_emplace(
      std::string(category), static_cast<uint16_t>(answer_.categories.size()));
  // Categories share the limit of names: there is at most one for each.
  if (is_new) answer_.categories.emplace_back(category);
  answer_.name_category.push_back(number->second);
  answer_.names.emplace_back(is_last ? "(other)" : name);
  const auto result = static_cast<uint16_t>(answer_.names.size() - 1);
  if (!is_last) name_numbers_.emplace(name, result);
  return result;
}

uint32_t SpanCollector::UnitsAfterBegin(uint64_t at_ns) const {
  const uint64_t inside = std::clamp(at_ns, window_.from_ns, window_.to_ns);
  return static_cast<uint32_t>((inside - window_.from_ns) / answer_.unit_ns);
}

absl::Status SpanCollector::WriteEvent(const TimelineRecord& record, uint64_t,
                                       const Placement& placement) {
  if (digests_ != nullptr && digests_->HasEvent(record)) return absl::OkStatus();
  AddEvent(placement.row, {.start_ns = record.start_ns,
                           .end_ns = record.end_ns,
                           .longest_ns = record.end_ns - record.start_ns,
                           .name = NameNumber(record),
                           .flags = FlagsOf(record)});
  return absl::OkStatus();
}

void SpanCollector::AddEvent(uint32_t row_number, const Event& event) {
  SpanRow* const row = RowAt(row_number);
  if (row == nullptr) {
    events_without_row_ += event.count;
    return;
  }
  RowState& state = states_[row_number];
  Item item{.start_ns = std::max(event.start_ns, window_.from_ns),
            .end_ns = std::clamp(event.end_ns, window_.from_ns, window_.to_ns),
            .count = event.count,
            .name = event.name,
            .depth = state.placed.Place(event.start_ns, event.end_ns),
            .flags = event.flags};
  state.levels.resize(state.placed.size());
  if (event.start_ns < window_.from_ns) item.flags |= kViewClippedLeft;
  if (event.end_ns > window_.to_ns) item.flags |= kViewClippedRight;
  if (event.count > 1) {
    item.flags |= kViewMerged;
    row->is_merged = true;
  }
  row->depth = std::max<uint32_t>(row->depth, item.depth + 1u);
  row->events += event.count;
  Add(*row, state, item, event.longest_ns);
  if (items_ > limits::kViewItemsMax) Coarsen();
}

void SpanCollector::AddDigestedBefore(uint64_t start_ns, uint64_t end_ns) {
  while (const DigestedEvent* event = digests_->Next(start_ns, end_ns)) AddDigested(*event);
}

// Looks the row up by what identifies it, so that it gets today's name.
void SpanCollector::AddDigested(const DigestedEvent& event) {
  const DigestRow& about = *event.row;
  if (about.is_counter()) {
    return AddCounter(event.stream, about.counter, about.counter_key, event.start_ns, event.value,
                      event.count);
  }
  AddEvent(rows_.NeuronRow(event.stream, about.thread_id, about.source, about.core),
           {.start_ns = event.start_ns,
            .end_ns = event.end_ns,
            .longest_ns = event.longest_ns,
            .count = event.count,
            .name = NameNumber(event.name->first, event.name->second),
            .flags = event.flags});
}

void SpanCollector::Merge(SpanRow& row, Level& level, const Part& part) {
  SpanColumns& spans = row.spans;
  const size_t at = level.item;
  spans.count[at] += part.count;
  spans.duration[at] = std::max(spans.duration[at], part.end - spans.start[at]);
  spans.flags[at] = (spans.flags[at] & ~kViewInstant) | (part.flags & ~kViewInstant) | kViewMerged;
  if (part.longest_ns > level.longest_ns) {
    level.longest_ns = part.longest_ns;
    spans.name[at] = part.name;
  }
  row.is_merged = true;
}

// Merges the item with the latest one of its level if both are narrower than a pixel and begin in
// the same one; otherwise appends it.
void SpanCollector::Add(SpanRow& row, RowState& state, Item item, uint64_t longest_ns) {
  Level& level = state.levels[item.depth];
  SpanColumns& spans = row.spans;
  const bool is_narrow = item.end_ns - item.start_ns < merge_ns_;
  const uint64_t pixel = PixelOf(item.start_ns);
  if (is_narrow && level.pixel == pixel) {
    return Merge(row, level,
                 {.end = UnitsAfterBegin(item.end_ns),
                  .count = item.count,
                  .name = item.name,
                  .flags = item.flags,
                  .longest_ns = longest_ns});
  }
  level.pixel = is_narrow ? pixel : UINT64_MAX;
  level.item = static_cast<uint32_t>(spans.size());
  level.longest_ns = longest_ns;
  spans.start.push_back(UnitsAfterBegin(item.start_ns));
  spans.duration.push_back(UnitsAfterBegin(item.end_ns) - spans.start.back());
  spans.count.push_back(item.count);
  spans.name.push_back(item.name);
  spans.depth.push_back(item.depth);
  spans.flags.push_back(item.flags);
  ++items_;
}

void SpanCollector::Coarsen() {
  while (items_ > limits::kViewItemsMax / 2 && merge_ns_ < window_.to_ns - window_.from_ns) {
    merge_ns_ *= 2;
    ++coarsened_;
    items_ = 0;
    for (RowState& state : states_) {
      if (state.answer_row != UINT32_MAX) Coarsen(answer_.rows[state.answer_row], state);
    }
  }
}

// Merges the row's items in their places, as Add would if they came once more.
void SpanCollector::Coarsen(SpanRow& row, RowState& state) {
  SpanColumns& spans = row.spans;
  for (Level& level : state.levels) level.pixel = UINT64_MAX;
  size_t kept = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    Level& level = state.levels[spans.depth[i]];
    const uint64_t length_ns = spans.duration[i] * answer_.unit_ns;
    const uint64_t pixel = spans.start[i] * answer_.unit_ns / merge_ns_;
    const bool is_narrow = length_ns < merge_ns_;
    if (is_narrow && level.pixel == pixel) {
      Merge(row, level,
            {.end = spans.start[i] + spans.duration[i],
             .count = spans.count[i],
             .name = spans.name[i],
             .flags = spans.flags[i],
             .longest_ns = length_ns});
      continue;
    }
    level = {.pixel = is_narrow ? pixel : UINT64_MAX,
             .item = static_cast<uint32_t>(kept),
             .longest_ns = length_ns};
    spans.Move(i, kept++);
  }
  spans.Resize(kept);
  items_ += kept;
}

void SpanCollector::AddCounter(uint32_t stream, std::string_view counter, std::string_view key,
                               uint64_t at_ns, double value, uint32_t count) {
  if (at_ns < window_.from_ns || at_ns >= window_.to_ns) return;
  const std::string name = fmt::format("{} {}", counter, key);
  const auto [known, is_new] = counter_rows_.try_emplace(
      fmt::format("{}\n{}", stream, name), static_cast<uint32_t>(answer_.rows.size()));
  if (is_new) {
    if (answer_.rows.size() >= limits::kViewRowsMax) {
      counter_rows_.erase(known);
      ++events_without_row_;
      return;
    }
    answer_.rows.push_back(
        {.stream = header_->streams[stream].description.number,
         .id = ViewRowId(ToString(header_->streams[stream].description.identity), name),
         .name = name,
         .source = "counter",
         .order = UINT32_MAX,
         .unit = UnitOfCounter(key)});
  }
  SpanRow& row = answer_.rows[known->second];
  const auto number = static_cast<float>(value);
  row.counter_max = row.events == 0 ? number : std::max(row.counter_max, number);
  row.events += count;
  if (count > 1) row.is_merged = true;
  CounterColumns& counters = row.counters;
  const uint32_t start = UnitsAfterBegin(at_ns);
  // One value for each pixel: a peak must not be lost between two others.
  const uint64_t last_ns =
      counters.size() == 0 ? 0 : window_.from_ns + counters.start.back() * answer_.unit_ns;
  if (counters.size() != 0 && PixelOf(last_ns) == PixelOf(at_ns)) {
    counters.value.back() = std::max(counters.value.back(), number);
    row.is_merged = true;
    return;
  }
  counters.start.push_back(start);
  counters.value.push_back(number);
}

absl::Status SpanCollector::WriteCounter(const TimelineRecord& record) {
  for (const CounterValue& value : CounterValuesOf(record, /*is_host=*/false)) {
    AddCounter(record.stream, value.counter, value.key, record.start_ns, value.value);
  }
  return absl::OkStatus();
}

absl::Status SpanCollector::WriteHostCounter(const TimelineRecord& record) {
  for (const CounterValue& value : CounterValuesOf(record, /*is_host=*/true)) {
    AddCounter(record.stream, value.counter, value.key, record.start_ns, value.value);
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
