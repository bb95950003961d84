// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "aggregator/align/device/device_times.h"
#include "aggregator/export/exporter.h"

namespace neurontrace {

// How much may wait at once. Beyond, a span is written without its stop's attributes.
struct WaitingLimits {
  size_t spans = 65'536;
  size_t bytes = size_t{64} << 20;
};

// Counts the spans that were written without the attributes of their stops. A plain value.
struct StopsMissed {
  // Spans that came when the limits were reached.
  uint64_t without_room = 0;
  // Spans whose stop was due inside the window and did not come.
  uint64_t not_come = 0;

  // Adds a warning for each count that is not 0.
  void Warn(const WaitingLimits& limits, ExportSummary& summary) const;
};

// Holds spans that are complete except for the attributes of a stop in a later chunk
// (kStopFollows), in the form that a format keeps them in, until these come (kStopAttributes). A
// stop that has not come long after the span's end will not come: its chunk cannot be read, or too
// many spans were under way. Limited in number and in bytes. Used by one thread at a time.
template <typename Span>
class WaitingSpans {
 public:
  // How much later than its span's end a stop may come: as far as a device's clock can move both.
  static constexpr uint64_t kLateNs = 2 * DeviceTimes::kShiftMaxNs;

  // Both limits hold at once.
  explicit WaitingSpans(WaitingLimits limits = {}) : limits_(limits) {}

  // Spans that end after the window have their stop out of sight; that it is missing needs no
  // warning.
  void Begin(const TimelineHeader& header) { window_end_ns_ = header.filter->window_end_ns; }

  // Returns whether the span of this record must be passed to Add; `text_bytes` is what it holds
  // beside its own size. A span without room is counted and must be written as it is.
  bool Admits(const TimelineRecord& record, size_t text_bytes) {
    if ((record.flags & kStopFollows) == 0) return false;
    if (spans_.size() < limits_.spans && text_bytes <= limits_.bytes - bytes_) return true;
    ++missed_.without_room;
    return false;
  }
  // Only for spans that Admits accepted, with the same `text_bytes`.
  void Add(const TimelineRecord& record, Span span, size_t text_bytes) {
    if (!spans_.try_emplace(record.span_id, record.end_ns, text_bytes, std::move(span)).second) {
      return;
    }
    by_end_.emplace(record.end_ns, record.span_id);
    bytes_ += text_bytes;
  }

  // Returns the span whose stop has come, and forgets it; nullopt if it does not wait.
  std::optional<Span> Take(uint64_t span_id) {
    const auto found = spans_.find(span_id);
    if (found == spans_.end()) return std::nullopt;
    std::optional<Span> span(std::move(found->second.span));
    bytes_ -= found->second.text_bytes;
    by_end_.erase({found->second.end_ns, span_id});
    spans_.erase(found);
    return span;
  }
  // Returns, one by one and by their ends, the spans whose stop should have come before a batch
  // that begins here. Called once all of the batch has been taken.
  std::optional<Span> TakeLate(uint64_t batch_begin_ns) {
    if (by_end_.empty() || batch_begin_ns <= kLateNs) return std::nullopt;
    return by_end_.begin()->first < batch_begin_ns - kLateNs ? TakeFirst() : std::nullopt;
  }
  // Returns the remaining spans one by one. Called after the last batch.
  std::optional<Span> TakeRest() { return by_end_.empty() ? std::nullopt : TakeFirst(); }

  // Called once, after the last TakeRest.
  void Warn(ExportSummary& summary) const { missed_.Warn(limits_, summary); }
  size_t size() const { return spans_.size(); }

 private:
  // A waiting span, with what Take needs to remove it from the other containers. Its memory is
  // text_bytes and a constant, which WaitingLimits::spans bounds.
  struct Held {
    Held(uint64_t end_ns, size_t text_bytes, Span span)
        : end_ns(end_ns), text_bytes(text_bytes), span(std::move(span)) {}
    uint64_t end_ns;
    size_t text_bytes;
    Span span;
  };

  // Removes the span that ended first, and counts its stop as missing.
  std::optional<Span> TakeFirst() {
    const auto [end_ns, span_id] = *by_end_.begin();
    if (end_ns < window_end_ns_) ++missed_.not_come;
    return Take(span_id);
  }

  // Held spans are in spans_ and in by_end_ at the same time: by id for their stops, and by their
  // ends for TakeLate.
  const WaitingLimits limits_;
  // Exclusive, in the time of the records.
  uint64_t window_end_ns_ = UINT64_MAX;
  absl::flat_hash_map<uint64_t, Held> spans_;       // by span id
  std::set<std::pair<uint64_t, uint64_t>> by_end_;  // end, span id
  // The sum of text_bytes of all spans.
  size_t bytes_ = 0;
  StopsMissed missed_;
};

}  // namespace neurontrace
