// SPDX-License-Identifier: Apache-2.0
#include "aggregator/derive/framework_arrows.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

// Points are resolved one time after another: those of one time wait in pending_ until the time
// advances, because a start may be listed after its end. A point then costs one search in the open
// spans of its row and one look-up by its key. The search is short, as spans nest and those that
// have ended are dropped. Starts, waiting ends, rows and spans are limited, and starts that are
// forgotten are counted for Warnings.

// Up to this number of open spans are searched as they are; with more, those that have ended are
// removed first.
constexpr size_t kSearchedMax = 32;

// Of points at one time, a start must be known before the steps and ends that continue it.
int OrderOf(RecordKind kind) {
  switch (kind) {
    case RecordKind::kFlowStart:
      return 0;
    case RecordKind::kFlowStep:
      return 1;
    default:
      return 2;
  }
}

}  // namespace

FrameworkArrows::Key FrameworkArrows::KeyOf(const TimelineRecord& record) {
  const std::string_view category = record.start().event_type;
  Key key{record.stream, HashEventType(category), 0};
  // Findings outlive the batch and its texts, so the name is copied once.
  if (!categories_.contains(key.category) && categories_.size() < kCategoriesMax) {
    categories_.emplace(key.category, std::make_unique<const std::string>(category));
  }
  const ShapeKey* about = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kTop, "flow_id", &about);
  if (value == nullptr) return key;
  const bool is_text = about->type == ValueType::kString || about->type == ValueType::kJson;
  // Texts outlive no batch, so that a hash of them is kept.
  key.id = is_text ? HashEventType(record.text(*value)) : *value;
  return key;
}

std::string_view FrameworkArrows::CategoryOf(const Key& key) const {
  const auto known = categories_.find(key.category);
  return known == categories_.end() ? std::string_view() : std::string_view(*known->second);
}

// Spans of one row come in the order of their starts, so the innermost one is the last.
void FrameworkArrows::AddSpan(uint64_t row, const ArrowSpan& span) {
  AdvanceTo(span.start_ns);
  next_number_ = span.number + 1;
  // Rows are never removed otherwise: most files have few.
  if (rows_.size() >= kRowsMax && !rows_.contains(row)) ForgetRows(span.start_ns);
  Row& spans = rows_[row];
  // It can hold only points of its own time, so the latest one suffices.
  if (span.end_ns == span.start_ns) {
    spans.latest = span;
    return;
  }
  std::vector<ArrowSpan>& open = spans.open;
  // Not those that end exactly now: a point of this time may belong to them.
  while (!open.empty() && open.back().end_ns < span.start_ns) open.pop_back();
  if (open.size() >= kOpenMax) {
    std::erase_if(open, [&](const ArrowSpan& other) { return other.end_ns < span.start_ns; });
    if (open.size() >= kOpenMax) open.erase(open.begin());
  }
  open.push_back(span);
}

// The span that contains a point may begin at the same time and be added after it.
void FrameworkArrows::AddPoint(uint64_t row, const TimelineRecord& point) {
  AdvanceTo(point.start_ns);
  ++points_;
  pending_.push_back({point.kind, KeyOf(point), row, point.start_ns});
}

void FrameworkArrows::AdvanceTo(uint64_t at_ns) {
  if (!pending_.empty() && pending_.front().at_ns < at_ns) Settle();
}

// Rows are looked at all at once, because this is rare.
void FrameworkArrows::ForgetRows(uint64_t before_ns) {
  absl::erase_if(rows_, [before_ns](auto& entry) {
    std::erase_if(entry.second.open,
                  [before_ns](const ArrowSpan& span) { return span.end_ns < before_ns; });
    return entry.second.open.empty();
  });
}

// The first span from the inside that has not ended contains the point.
std::optional<ArrowSpan> FrameworkArrows::Find(const Point& point) {
  const auto found = rows_.find(point.row);
  if (found == rows_.end()) return std::nullopt;
  Row& row = found->second;
  if (row.open.size() > kSearchedMax) {
    std::erase_if(row.open, [&](const ArrowSpan& span) { return span.end_ns < point.at_ns; });
  }
  const ArrowSpan* around = nullptr;
  const ArrowSpan* ending = nullptr;
  for (auto span = row.open.rbegin(); span != row.open.rend() && around == nullptr; ++span) {
    if (span->end_ns > point.at_ns) {
      around = &*span;
    } else if (span->end_ns == point.at_ns && ending == nullptr) {
      ending = &*span;
    }
  }
  // The order of preference is that of the class comment.
  if (around != nullptr && around->start_ns == point.at_ns) return *around;
  if (row.latest && row.latest->start_ns == point.at_ns) return row.latest;
  if (around != nullptr) return *around;
  return ending != nullptr ? std::optional(*ending) : std::nullopt;
}

// The sort is stable, so that points of one kind keep the order of the file.
void FrameworkArrows::Settle() {
  std::stable_sort(pending_.begin(), pending_.end(), [](const Point& a, const Point& b) {
    return OrderOf(a.kind) < OrderOf(b.kind);
  });
  for (const Point& point : pending_) {
    std::optional<ArrowSpan> span = Find(point);
    if (!span) {
      ++without_span_;
      // What follows must not be connected to the start before this one.
      if (point.kind != RecordKind::kFlowEnd) open_.erase(point.key);
      continue;
    }
    // Callers write a batch only after its arrows are known: what they can still add to a span
    // depends on whether it is written.
    span->is_past = span->number < batch_number_;
    if (point.kind != RecordKind::kFlowStart) {
      ++ends_;
      const bool has_start = TakeEnd(point, *span);
      // A step without a start begins nothing, as in the viewers of this format.
      if (point.kind == RecordKind::kFlowEnd || !has_start) continue;
    }
    AddStart(point, *span);
  }
  pending_.clear();
}

// A start replaces the one before it with the same key.
void FrameworkArrows::AddStart(const Point& point, const ArrowSpan& span) {
  Open& open = open_[point.key];
  open.start = End{next_id_++, span, point.at_ns};
  starts_.emplace_back(point.key, open.start->id);
  findings_.push_back({.kind = ArrowFinding::Kind::kStart,
                       .id = open.start->id,
                       .from = span,
                       .from_at_ns = point.at_ns,
                       .category = CategoryOf(point.key)});
  for (const End& end : std::exchange(open.waiting, {})) {
    // Too early: the id was probably used again for another arrow.
    if (point.at_ns - end.at_ns > kEarlyNs) continue;
    ++ends_joined_;
    open.start->has_end = true;
    ArrowSpan to = end.span;
    to.is_past = to.number < batch_number_;
    findings_.push_back({.kind = ArrowFinding::Kind::kArrow,
                         .id = open.start->id,
                         .waiting_id = end.id,
                         .from = span,
                         .to = to,
                         .from_at_ns = point.at_ns,
                         .to_at_ns = end.at_ns,
                         .category = CategoryOf(point.key)});
  }
  ForgetOldest();
}

// A waiting end is reported at once, as callers write spans before its start may come.
bool FrameworkArrows::TakeEnd(const Point& point, const ArrowSpan& span) {
  const auto known = open_.find(point.key);
  if (known == open_.end() || !known->second.start) {
    // Leaves no entry, because nothing would remove it.
    if (point.kind == RecordKind::kFlowStep) return false;
    const uint64_t id = next_id_++;
    open_[point.key].waiting.push_back({id, span, point.at_ns});
    waiting_.emplace_back(point.key, id);
    findings_.push_back({.kind = ArrowFinding::Kind::kWaiting,
                         .id = id,
                         .to = span,
                         .to_at_ns = point.at_ns,
                         .category = CategoryOf(point.key)});
    ForgetOldest();
    return false;
  }
  ++ends_joined_;
  End& start = *known->second.start;
  start.has_end = true;
  findings_.push_back({.kind = ArrowFinding::Kind::kArrow,
                       .id = start.id,
                       .from = start.span,
                       .to = span,
                       .from_at_ns = start.at_ns,
                       .to_at_ns = point.at_ns,
                       .category = CategoryOf(point.key)});
  return true;
}

// Entries of the queues may be old: the key has another start since, or the end was joined.
void FrameworkArrows::ForgetOldest() {
  while (starts_.size() > kStartsMax) {
    const auto [key, id] = starts_.front();
    starts_.pop_front();
    const auto open = open_.find(key);
    if (open == open_.end() || !open->second.start || open->second.start->id != id) continue;
    if (!open->second.start->has_end) ++forgotten_;
    open_.erase(open);
  }
  while (waiting_.size() > kWaitingMax) {
    const auto [key, id] = waiting_.front();
    waiting_.pop_front();
    const auto open = open_.find(key);
    if (open == open_.end()) continue;
    std::erase_if(open->second.waiting, [id = id](const End& end) { return end.id == id; });
    // Otherwise open_ would grow with every id of the file.
    if (!open->second.start && open->second.waiting.empty()) open_.erase(open);
  }
}

std::vector<std::string> FrameworkArrows::Warnings() const {
  std::vector<std::string> warnings;
  if (ends_joined_ < ends_) {
    warnings.push_back(fmt::format("{} of {} arrow ends in framework traces have no start",
                                   ends_ - ends_joined_, ends_));
  }
  if (without_span_ > 0) {
    warnings.push_back(
        fmt::format("{} of {} arrow points in framework traces lie where their thread has no span; "
                    "their arrows are not drawn",
                    without_span_, points_));
  }
  if (forgotten_ > 0) {
    warnings.push_back(
        fmt::format("{} arrow starts in framework traces were dropped because more than {} waited "
                    "for their ends; later ends have no start",
                    forgotten_, kStartsMax));
  }
  return warnings;
}

}  // namespace neurontrace
