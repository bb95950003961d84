// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/view/row_levels.h"
#include "aggregator/view/span_answer.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

class DigestFeed;
struct DigestedEvent;

// Collects what one window of the page shows, on the rows that a Perfetto trace of the same capture
// has. Spans that are at least a pixel wide stay as they are. Narrower ones are merged with their
// neighbour on the same row and level if that begins in the same pixel, so that the number of items
// depends on the width of the page and not on that of the capture. Every event is counted in
// exactly one item.
//
// Take returns the answer. Used by one thread at a time.
class SpanCollector final : public ViewCollector {
 public:
  struct Window {
    uint64_t from_ns = 0;
    uint64_t to_ns = 1;  // after from_ns
    uint32_t pixels = 1'600;
  };
  // `digests` have the events of chunks that are not read; nullptr: all are read. Must outlive
  // this.
  explicit SpanCollector(const Window& window, DigestFeed* digests = nullptr);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;

  // Returns the answer and leaves the collector empty. Requires that the export is finished.
  SpanAnswer Take() { return std::move(answer_); }

 private:
  // The item of a level that a narrow event may be merged with.
  struct Level {
    uint64_t pixel = UINT64_MAX;  // of the latest item's begin if it is narrow
    uint32_t item = 0;            // index of that item
    uint64_t longest_ns = 0;      // within it
  };
  // What an open row needs besides its part of the answer.
  struct RowState {
    uint32_t answer_row = UINT32_MAX;
    RowLevels placed;
    std::vector<Level> levels;
  };
  struct Item {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint32_t count = 1;
    uint16_t name = 0;
    uint8_t depth = 0;
    uint8_t flags = 0;
  };
  // What an item loses when it becomes a part of another one.
  struct Part {
    uint32_t end = 0;  // units after the window's begin
    uint32_t count = 1;
    uint16_t name = 0;
    uint8_t flags = 0;
    uint64_t longest_ns = 0;
  };
  // An event as it is drawn, or several of one row.
  struct Event {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
    uint64_t longest_ns = 0;
    uint32_t count = 1;
    uint16_t name = 0;
    uint8_t flags = 0;
  };

  // Adds what digests have of the time before the record.
  void Advance(const TimelineRecord& record) override {
    if (digests_ != nullptr) AddDigestedBefore(record.start_ns, record.end_ns);
  }
  absl::Status WriteHostCounter(const TimelineRecord& record) override;
  absl::Status WriteCounter(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;

  // Returns the row of the answer, or nullptr if there are too many.
  SpanRow* RowAt(uint32_t row);
  // Adds one value of a counter to the row of the stream that the counter's name and the value's
  // key name together.
  void AddCounter(uint32_t stream, std::string_view counter, std::string_view key, uint64_t at_ns,
                  double value, uint32_t count = 1);
  void AddEvent(uint32_t row_number, const Event& event);
  // Adds everything of digests that comes before an event with these times.
  void AddDigestedBefore(uint64_t start_ns, uint64_t end_ns);
  void AddDigested(const DigestedEvent& event);
  // Returns the number of the record's name. Events of the runtime have that of their shape.
  uint16_t NameNumber(const TimelineRecord& record);
  uint16_t NameNumber(std::string_view name, std::string_view category);
  void Add(SpanRow& row, RowState& state, Item item, uint64_t longest_ns);
  // Merges the part with the level's latest item.
  static void Merge(SpanRow& row, Level& level, const Part& part);
  // Doubles the width within which items are merged, and merges those collected so far.
  void Coarsen();
  void Coarsen(SpanRow& row, RowState& state);
  uint32_t UnitsAfterBegin(uint64_t at_ns) const;
  uint64_t PixelOf(uint64_t at_ns) const { return (at_ns - window_.from_ns) / merge_ns_; }

  const Window window_;
  DigestFeed* const digests_;
  uint64_t merge_ns_;  // narrower items are merged
  EventAttributes attributes_;
  SpanAnswer answer_;
  std::vector<RowState> states_;  // by row of the RowModel
  absl::flat_hash_map<std::string, uint32_t> counter_rows_;
  absl::flat_hash_map<std::string, uint16_t> name_numbers_;
  std::vector<uint32_t> shape_names_;  // by number of the shape; kNoName: not looked up yet
  absl::flat_hash_map<std::string, uint16_t> category_numbers_;
  size_t items_ = 0;
  uint64_t events_without_row_ = 0;
  uint32_t coarsened_ = 0;  // times
};

}  // namespace neurontrace
