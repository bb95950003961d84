// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "aggregator/derive/framework_arrows.h"
#include "aggregator/derive/framework_links.h"
#include "aggregator/export/parquet/event_row.h"

namespace neurontrace {

// An edge from one row of SystemProfileEvents to another. A plain value.
struct FlowEdge {
  int64_t in_id = 0;
  int64_t out_id = 0;
  std::string_view type;
  // From the end of the first to the start of the second; negative if they overlap.
  int64_t gap_ns = 0;
};
// Receives edges; an error ends the export.
using FlowEdgeSink = std::function<absl::Status(const FlowEdge& edge)>;

// Finds which row led to which: the results of FrameworkLinks and FrameworkArrows as edges between
// rows. Beyond the limit, edges from rows that were remembered longest are not found, and are
// counted. Not used if arrows are not requested. Used by one thread at a time; the header must
// outlive it.
class FlowEdges {
 public:
  // Rows of each kind that edges can start at: the latest.
  static constexpr size_t kRememberedMax = 32'768;

  explicit FlowEdges(const TimelineHeader& header);

  // Takes the row that was made of a record, adds its flow_ids, and passes edges to `take`. Fails
  // with errors of `take`. Called for the rows in the order of their ids, before a row may wait for
  // its stop.
  absl::Status AddRow(const TimelineRecord& record, EventRow& row, const FlowEdgeSink& take);
  // Takes the start, step or end of an arrow.
  void CollectPoint(const TimelineRecord& record);
  // Must be called at the end of each batch.
  absl::Status EndBatch(const FlowEdgeSink& take);

  // Returns warnings for users, at the end.
  std::vector<std::string> Warnings() const;

 private:
  // What an edge needs to know of a row.
  struct Place {
    int64_t id = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  // Stream, id, and a hash of more; or a chain.
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;
  // The latest places by key, up to kRememberedMax. Costs constant time for each row.
  class Remembered {
   public:
    const Place* Find(const Key& key) const;
    void Put(const Key& key, const Place& place);

   private:
    absl::flat_hash_map<Key, Place> places_;
    std::deque<Key> in_order_;
  };
  // Returns a hash of the record's row.
  static uint64_t FrameworkRow(const TimelineRecord& record);
  // Returns the edge between two rows, with the gap as it is known now.
  static FlowEdge Edge(const Place& from, const Place& to, std::string_view type);
  // Returns the memory of rows for a kind of chain.
  Remembered& RememberedOf(LinkKind kind);
  absl::Status EmitLink(const LinkPoint& point, const Place& place, const FlowEdgeSink& take);
  absl::Status EmitArrows(const FlowEdgeSink& take);

  const TimelineHeader& header_;
  FrameworkLinks links_;
  // The rows that a framework's call, a request's next span or an execution's part can follow.
  Remembered operations_;
  Remembered sequences_;
  Remembered executions_;
  // Edges from a row that was no longer remembered.
  uint64_t forgotten_ = 0;
  FrameworkArrows arrows_;
};

}  // namespace neurontrace
