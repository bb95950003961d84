// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/view/event_id.h"
#include "aggregator/view/event_query.h"
#include "aggregator/view/row_levels.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

class DigestFeed;
struct DigestedEvent;
struct DigestedSums;

// Lists the events of a window that a query finds, in the order of their starts, each with all its
// arguments. Json returns the list. Used by one thread at a time.
class EventCollector final : public ViewCollector {
 public:
  struct Options {
    uint64_t from_ns = 0;
    uint64_t to_ns = 1;
    uint64_t skip = 0;  // found events that earlier answers listed
    size_t limit = 200;
    EventQuery query;
    // Lists hits without their arguments, and counts those beyond the limit.
    bool is_search = false;
    // A search that ends at the limit, because another collector counts.
    bool is_counted_elsewhere = false;
    uint32_t bins = 512;  // of a search's density
    // Made with DigestUse::kCounts, of a search that only counts: `limit` is 0 and the query
    // depends on names only. It has the events of chunks that are not read; nullptr: all are read.
    // Must outlive the collector.
    DigestFeed* digests = nullptr;
  };
  explicit EventCollector(Options options);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_; }
  // Executions have the model's name of their preparation among their arguments.
  bool reads_before_window() const override { return !options_.is_search || needs_arguments(); }

  // Returns whether everything that the answer may list has been found, so that reading can stop.
  bool is_full() const { return is_full_; }
  // The start of the first event that the list had no room for. Requires is_full().
  uint64_t full_at_ns() const { return full_at_ns_; }
  // Takes over what another collector counted in the same window.
  void UseCounts(const EventCollector& counted);
  // Of a search: the numbers of the streams with a hit, and the first moment that may have one.
  std::vector<uint32_t> StreamsWithHits() const;
  uint64_t FirstHitNs() const;
  // Returns the answer of `events` or `search` in docs/formats/view_api.md. Requires that the
  // export is finished, or was ended because the list is full. `is_complete` is false if chunks
  // were left out; `chunks_scanned` are those of the window that were read.
  std::string Json(bool is_complete, uint64_t chunks_scanned) const;

 private:
  struct Found {
    std::string head;  // the object up to its arguments
    std::string arguments;
  };

  absl::Status WriteStop(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;

  bool needs_arguments() const { return options_.query.needs_arguments(); }
  // Returns whether the query finds the record, whose attributes have been read.
  bool IsFound(const TimelineRecord& record, const std::vector<EventAttribute>& attributes);
  EventQuery::Place PlaceOf(uint32_t stream) const;
  std::string HeadOf(const TimelineRecord& record, const ExportRow& row, uint8_t depth);
  static std::string ArgumentsOf(const std::vector<EventAttribute>& attributes);
  void CountHits(uint32_t stream, uint64_t start_ns, uint64_t count);
  void AddSums(const DigestedSums& sums);
  void AddIncoming(const DigestedEvent& span);

  const Options options_;
  EventAttributes attributes_;
  std::vector<RowLevels> levels_;  // by row
  std::vector<Found> found_;
  // Spans among `found_` whose stop is in a later chunk, by span_id.
  absl::flat_hash_map<uint64_t, size_t> waiting_;
  std::vector<uint64_t> density_;
  absl::flat_hash_set<uint32_t> streams_with_hits_;         // numbers
  std::vector<std::pair<std::string, std::string>> texts_;  // reused
  uint64_t total_ = 0;
  uint64_t bytes_ = 0;
  bool is_full_ = false;
  uint64_t full_at_ns_ = 0;
  uint64_t chunks_digested_ = 0;
  uint64_t shift_ns_ = 0;  // how far from its time a hit may be in `density_`
};

}  // namespace neurontrace
