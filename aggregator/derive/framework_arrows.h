// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// A span of a framework's file at one end of an arrow. A plain value.
struct ArrowSpan {
  // Assigned by the caller; ascends from span to span.
  uint64_t number = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  // Assigned by the caller, such as a track or a lane.
  uint32_t place = 0;
  // The span was added before the caller's latest StartBatch.
  bool is_past = false;
};

// Something that was learned about an arrow. `id` identifies the point that it concerns and is
// unique in one reading. A plain value.
struct ArrowFinding {
  enum class Kind : uint8_t {
    // `from` holds the start or step `id`, from which arrows may leave.
    kStart,
    // `to` holds the end or step `id`, whose start may still follow.
    kWaiting,
    // An arrow from start `id`, at `from_at_ns`, to `to`, at `to_at_ns`.
    kArrow,
  };
  Kind kind = Kind::kArrow;
  uint64_t id = 0;
  // With kArrow: the id under which the end was reported as waiting, else 0.
  uint64_t waiting_id = 0;
  // Its is_past is that of its kStart.
  ArrowSpan from;
  ArrowSpan to;
  uint64_t from_at_ns = 0;
  uint64_t to_at_ns = 0;
  std::string_view
      category;  // of its points; empty beyond kCategoriesMax; lives as the finder does
};

// Resolves the arrows of framework files (`s`, `t` and `f` events of the Trace Event Format) to the
// spans that they connect, so that all formats draw the same ones. Points of one stream, category
// and id belong together. An end or step continues the latest start or step before it: several ends
// of one start are several arrows from that start. An end may come before its start, by at most
// kEarlyNs, because a device's clock can be ahead of its host's. Ends and steps without a start are
// connected to nothing.
//
// A point belongs to a span of its row. Candidates in this order: the innermost span with a length
// that begins at its time, one without a length there, the innermost span around it, one that ends
// at its time. Points of one time are resolved together, starts before steps before ends, once the
// caller reaches a later time.
//
// Used by one thread at a time.
class FrameworkArrows {
 public:
  // How long an end may precede its start.
  static constexpr uint64_t kEarlyNs = 1'000'000'000;
  // Beyond, the oldest start is forgotten.
  static constexpr size_t kStartsMax = 262'144;
  // Beyond, the oldest end no longer waits.
  static constexpr size_t kWaitingMax = 262'144;
  // Open spans of one row. Beyond, the outermost is forgotten.
  static constexpr size_t kOpenMax = 4'096;
  // Beyond, rows without open spans are forgotten.
  static constexpr size_t kRowsMax = 65'536;
  // Names of categories. Arrows of further ones have an empty name.
  static constexpr size_t kCategoriesMax = 4'096;

  // Declares all spans so far to be past.
  void StartBatch() { batch_number_ = next_number_; }

  // Records must be added in the order of their starts. `row` is the caller's number of the span's
  // row. A row is one line of a viewer, such as a thread.
  void AddSpan(uint64_t row, const ArrowSpan& span);
  // The kind of the record must be one of the three of flows.
  void AddPoint(uint64_t row, const TimelineRecord& point);
  // Resolves the points added so far. Must be called at the end of each batch.
  void EndBatch() {
    Settle();
    assert(open_.size() <= starts_.size() + waiting_.size());  // ForgetOldest reaches every key
  }

  // Findings since the caller last cleared them, in the order of time.
  std::vector<ArrowFinding>& findings() { return findings_; }

  // Returns the number of all points so far, with and without a span.
  uint64_t points() const { return points_; }
  // Returns warnings for users about points that are part of no arrow.
  std::vector<std::string> Warnings() const;

 private:
  // The spans of one row that a point can belong to.
  struct Row {
    // Spans with a length, by start; some may have ended.
    std::vector<ArrowSpan> open;
    // The latest span without a length.
    std::optional<ArrowSpan> latest;
  };
  // What the points of one arrow have in common.
  struct Key {
    uint32_t stream = 0;
    uint64_t category = 0;  // a hash
    // A hash if the id is a text.
    uint64_t id = 0;
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.category, key.id);
    }
  };
  // A point that is not resolved yet.
  struct Point {
    RecordKind kind = RecordKind::kFlowStart;
    Key key;
    uint64_t row = 0;
    uint64_t at_ns = 0;
  };
  // A resolved point: a start that ends may refer to, or an end that waits for its start.
  struct End {
    uint64_t id = 0;
    ArrowSpan span;
    uint64_t at_ns = 0;
    bool has_end = false;  // of a start
  };
  // The points of one key that further ones may continue.
  struct Open {
    std::optional<End> start;
    std::vector<End> waiting;
  };

  // Also keeps the name of the category, up to kCategoriesMax.
  Key KeyOf(const TimelineRecord& record);
  // Returns "" for a category that was not kept.
  std::string_view CategoryOf(const Key& key) const;
  // Resolves the pending points if the time has advanced beyond theirs.
  void AdvanceTo(uint64_t at_ns);
  // Resolves all pending points, starts first.
  void Settle();
  // Returns the span that a point belongs to.
  std::optional<ArrowSpan> Find(const Point& point);
  // Opens an arrow at the point, and joins the ends that wait for it.
  void AddStart(const Point& point, const ArrowSpan& span);
  // Takes an end or a step. Returns whether it has a start.
  bool TakeEnd(const Point& point, const ArrowSpan& span);
  // Removes rows without a span that ends at `before_ns` or later.
  void ForgetRows(uint64_t before_ns);
  // Keeps starts_ and waiting_ within their limits.
  void ForgetOldest();

  absl::flat_hash_map<uint64_t, Row> rows_;
  absl::flat_hash_map<Key, Open> open_;
  // In the order of time, with their ids.
  std::deque<std::pair<Key, uint64_t>> starts_;
  // In the order of time; some have found their start.
  std::deque<std::pair<Key, uint64_t>> waiting_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<const std::string>> categories_;  // by hash
  // Points of one time.
  std::vector<Point> pending_;
  std::vector<ArrowFinding> findings_;
  uint64_t next_id_ = 1;
  // One above the number of the latest span.
  uint64_t next_number_ = 0;
  // Spans with a lower number are past.
  uint64_t batch_number_ = 0;
  uint64_t points_ = 0;
  // Ends and steps.
  uint64_t ends_ = 0;
  uint64_t ends_joined_ = 0;
  uint64_t without_span_ = 0;
  // Starts that were forgotten without an end.
  uint64_t forgotten_ = 0;
};

}  // namespace neurontrace
