// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// A span of a framework's file as an arrow's end. A plain value.
struct ArrowSpan {
  uint64_t number = 0;  // the caller's; grows from span to span
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t place = 0;    // the caller's: a track, a lane
  bool is_past = false;  // the span began before the caller's latest StartBatch
};

// Something learned about an arrow. `id` names the point that it is about, and is unique in one
// reading.
struct ArrowFinding {
  enum class Kind : uint8_t {
    kStart,    // `from` holds the start or step `id`; arrows may leave it
    kWaiting,  // `to` holds the end or step `id`, whose start may still follow
    kArrow,    // from start `id`, at `from_at_ns`, to `to`, at `to_at_ns`
  };
  Kind kind = Kind::kArrow;
  uint64_t id = 0;
  uint64_t waiting_id = 0;  // kArrow: of the end if it was reported as waiting, else 0
  ArrowSpan from;           // is_past as of its kStart
  ArrowSpan to;
  uint64_t from_at_ns = 0;
  uint64_t to_at_ns = 0;
  std::string_view
      category;  // of its points; empty beyond kCategoriesMax; lives as the finder does
};

// Resolves the arrows of framework files (`s`, `t`, `f` events) to the spans that they connect, so
// that all formats draw the same ones. Points of one stream, category and id belong together. An
// end or step continues the latest start or step before it: several ends of one start are several
// arrows from that start. An end may come before its start in time, by at most kEarlyNs, because a
// device's clock can be ahead of its host's. Ends and steps without a start are connected to
// nothing.
//
// A point belongs to a span of its row: of those that begin at its time to the innermost one with a
// length, else to one without; else to the innermost span around it; else to one that ends at its
// time. Points of one time are resolved together, starts before steps before ends, when the caller
// reaches a later time.
//
// One thread at a time.
class FrameworkArrows {
 public:
  static constexpr uint64_t kEarlyNs = 1'000'000'000;
  static constexpr size_t kStartsMax = 262'144;   // beyond, the oldest start is forgotten
  static constexpr size_t kWaitingMax = 262'144;  // beyond, the oldest end waits no longer
  static constexpr size_t kOpenMax = 4'096;       // open spans of a row; beyond, the outermost goes
  static constexpr size_t kRowsMax = 65'536;      // beyond, rows without open spans are forgotten
  static constexpr size_t kCategoriesMax = 4'096;

  // Marks all spans so far as past.
  void StartBatch() { batch_number_ = next_number_; }

  // Records come in the order of their start. `row` is the caller's.
  void AddSpan(uint64_t row, const ArrowSpan& span);
  void AddPoint(uint64_t row, const TimelineRecord& point);
  // Resolves the points added so far. To be called at the end of each batch.
  void EndBatch() { Settle(); }

  // What was found since the caller last cleared it, in the order of time.
  std::vector<ArrowFinding>& findings() { return findings_; }

  uint64_t points() const { return points_; }
  // Warnings for the user about points that are part of no arrow.
  std::vector<std::string> Warnings() const;

 private:
  struct Row {
    std::vector<ArrowSpan> open;      // with a length, by start; some may have ended
    std::optional<ArrowSpan> latest;  // the latest one without a length
  };
  struct Key {
    uint32_t stream = 0;
    uint64_t category = 0;  // a hash
    uint64_t id = 0;        // a hash where it is text
    friend bool operator==(const Key&, const Key&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.stream, key.category, key.id);
    }
  };
  struct Point {
    RecordKind kind = RecordKind::kFlowStart;
    Key key;
    uint64_t row = 0;
    uint64_t at_ns = 0;
  };
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

  Key KeyOf(const TimelineRecord& record);
  std::string_view CategoryOf(const Key& key) const;
  void AdvanceTo(uint64_t at_ns);
  void Settle();
  std::optional<ArrowSpan> Find(const Point& point);
  void TakeStart(const Point& point, const ArrowSpan& span);
  // Of an end or a step; returns whether it has a start.
  bool TakeEnd(const Point& point, const ArrowSpan& span);
  void ForgetRows(uint64_t before_ns);
  void ForgetOldest();

  absl::flat_hash_map<uint64_t, Row> rows_;
  absl::flat_hash_map<Key, Open> open_;
  std::deque<std::pair<Key, uint64_t>> starts_;   // in the order of time, with their ids
  std::deque<std::pair<Key, uint64_t>> waiting_;  // in order of time; some have found their start
  absl::flat_hash_map<uint64_t, std::unique_ptr<const std::string>> categories_;  // by hash
  std::vector<Point> pending_;                                                    // of one time
  std::vector<ArrowFinding> findings_;
  uint64_t next_id_ = 1;
  uint64_t next_number_ = 0;   // of spans: one above the latest
  uint64_t batch_number_ = 0;  // spans of a lower number are past
  uint64_t points_ = 0;
  uint64_t ends_ = 0;  // ends and steps
  uint64_t ends_joined_ = 0;
  uint64_t without_span_ = 0;
  uint64_t forgotten_ = 0;  // starts without an end
};

}  // namespace neurontrace
