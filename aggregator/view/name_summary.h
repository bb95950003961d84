// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/summary.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/view/digest_feed.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

// Sums up the events of a window by name or by rank: how many, how long in total and by themselves,
// and how the lengths are distributed. Json returns the table. Used by one thread at a time.
class NameSummary final : public ViewCollector {
 public:
  enum class By : uint8_t { kName, kRank };
  struct Window {
    uint64_t from_ns = 0;
    uint64_t to_ns = 1;
  };
  // `digests`, made with DigestUse::kSums, have the events of chunks that are not read; nullptr:
  // all are read. Must outlive this.
  NameSummary(By by, const Window& window, DigestFeed* digests = nullptr);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;

  // Returns the answer of `summary` in docs/formats/view_api.md, the largest total first. Requires
  // that the export is finished. `is_complete` is false if chunks were left out.
  std::string Json(bool is_complete) const;

 private:
  struct Line {
    std::string name;
    DurationSketch durations;
    // Below 0 only while digests and what was read are not complete.
    int64_t self_ns = 0;
    uint64_t instants = 0;
  };
  // A span of a row whose end has not been reached, with the line that its own time goes to.
  struct OpenSpan {
    uint64_t end_ns = 0;
    size_t line = 0;
  };

  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;

  // Returns the line of a name of the stream.
  size_t LineOf(uint32_t stream, std::string_view name);
  // Moves the span's time within the window from its parent's own time to its own.
  void CountSelf(uint32_t row, uint64_t start_ns, uint64_t end_ns, size_t line);
  void AddSums(const DigestedSums& sums);
  void AddIncoming(const std::vector<DigestedEvent>& spans);
  // Adds what digests have of the time up to this: spans from before the window, and spans that may
  // enclose those that are read.
  void AdvanceDigests(uint64_t start_ns);
  // Takes the time behind the window from the own time of spans that reach there.
  void ClipCrossing();
  uint32_t RowOfCrossing(const DigestedCrossing& span);

  const By by_;
  const Window window_;
  DigestFeed* const digests_;
  std::vector<DigestedCrossing> crossing_;
  size_t crossing_at_ = 0;
  bool has_begun_ = false;  // everything from before the window has been read
  EventAttributes attributes_;
  std::vector<Line> lines_;
  absl::flat_hash_map<std::string, size_t> line_of_;
  std::vector<std::vector<OpenSpan>> open_;  // by row, the innermost last
  uint64_t events_ = 0;
  // Spans whose length is unknown or impossible: in `events` and in no sum.
  uint64_t without_length_ = 0;
};

}  // namespace neurontrace
