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

// How much may wait at once. Beyond, a span is written without what its stop would bring.
struct WaitingLimits {
  size_t spans = 65'536;
  size_t bytes = size_t{64} << 20;
};

// Counts the spans that were written without the attributes of their stops. A plain value.
struct StopsMissed {
  uint64_t without_room = 0;
  uint64_t not_come = 0;

  // Warnings in words, of what is not 0.
  void Warn(const WaitingLimits& limits, ExportSummary& summary) const;
};

// Spans that are complete but for the attributes of a stop in a later chunk (kStopFollows), in the
// form in which a format keeps them, until these come (kStopAttributes). A stop that has not come
// long after the span's end does not come any more: its chunk cannot be read, or too many were
// under way. Bounded in number and in bytes. One thread at a time.
template <typename Span>
class WaitingSpans {
 public:
  // A stop may come so much later than its span ends: as far as a device's clock moves it.
  static constexpr uint64_t kLateNs = 2 * DeviceTimes::kShiftMaxNs;

  explicit WaitingSpans(WaitingLimits limits = {}) : limits_(limits) {}

  // What ends later has its stop out of sight: that it is missing goes without saying.
  void Begin(const TimelineHeader& header) { window_end_ns_ = header.filter->window_end_ns; }

  // Whether the span of this record is to be added; `text_bytes` is what it holds besides its own
  // size. One that finds no room is counted, and to be written as it is.
  bool Admits(const TimelineRecord& record, size_t text_bytes) {
    if ((record.flags & kStopFollows) == 0) return false;
    if (spans_.size() < limits_.spans && text_bytes <= limits_.bytes - bytes_) return true;
    ++missed_.without_room;
    return false;
  }
  void Add(const TimelineRecord& record, Span span, size_t text_bytes) {
    if (!spans_.try_emplace(record.span_id, record.end_ns, text_bytes, std::move(span)).second) {
      return;
    }
    by_end_.emplace(record.end_ns, record.span_id);
    bytes_ += text_bytes;
  }

  // The span whose stop has come; nullopt: it does not wait.
  std::optional<Span> Take(uint64_t span_id) {
    const auto found = spans_.find(span_id);
    if (found == spans_.end()) return std::nullopt;
    std::optional<Span> span(std::move(found->second.span));
    bytes_ -= found->second.text_bytes;
    by_end_.erase({found->second.end_ns, span_id});
    spans_.erase(found);
    return span;
  }
  // One by one, by their ends, those whose stop should have come before a batch that begins here.
  // To be asked when all of the batch has been taken.
  std::optional<Span> TakeLate(uint64_t batch_begin_ns) {
    if (by_end_.empty() || batch_begin_ns <= kLateNs) return std::nullopt;
    return by_end_.begin()->first < batch_begin_ns - kLateNs ? TakeFirst() : std::nullopt;
  }
  // Also all that are left, when there are no more batches.
  std::optional<Span> TakeRest() { return by_end_.empty() ? std::nullopt : TakeFirst(); }

  void Warn(ExportSummary& summary) const { missed_.Warn(limits_, summary); }
  size_t size() const { return spans_.size(); }

 private:
  struct Held {
    Held(uint64_t end_ns, size_t text_bytes, Span span)
        : end_ns(end_ns), text_bytes(text_bytes), span(std::move(span)) {}
    uint64_t end_ns;
    size_t text_bytes;
    Span span;
  };

  std::optional<Span> TakeFirst() {
    const auto [end_ns, span_id] = *by_end_.begin();
    if (end_ns < window_end_ns_) ++missed_.not_come;
    return Take(span_id);
  }

  const WaitingLimits limits_;
  uint64_t window_end_ns_ = UINT64_MAX;
  absl::flat_hash_map<uint64_t, Held> spans_;       // by span id
  std::set<std::pair<uint64_t, uint64_t>> by_end_;  // end, span id
  size_t bytes_ = 0;
  StopsMissed missed_;
};

}  // namespace neurontrace
