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

// From one row of SystemProfileEvents to another.
struct FlowEdge {
  int64_t in_id = 0;
  int64_t out_id = 0;
  std::string_view type;
  int64_t gap_ns = 0;
};
using FlowEdgeTaker = std::function<absl::Status(const FlowEdge& edge)>;

// Finds which row led to which: what FrameworkLinks and FrameworkArrows join, as edges between
// rows. Beyond the limit the edges of what was remembered longest are not found, and counted. One
// thread at a time.
class FlowEdges {
 public:
  static constexpr size_t kRememberedMax = 32'768;  // of each kind, the latest

  explicit FlowEdges(const TimelineHeader& header);

  // A row that was made of a record; its flow_ids are added to it.
  absl::Status TakeRow(const TimelineRecord& record, EventRow& row, const FlowEdgeTaker& take);
  // The start, step or end of an arrow.
  void TakePoint(const TimelineRecord& record);
  // To be called at the end of each batch.
  absl::Status EndBatch(const FlowEdgeTaker& take);

  // Warnings for people, at the end.
  std::vector<std::string> Warnings() const;

 private:
  struct Place {
    int64_t id = 0;
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };
  using Key = std::tuple<uint32_t, uint64_t, uint64_t>;  // stream, id, hash of more; or a chain
  // The latest places by key.
  class Remembered {
   public:
    const Place* Find(const Key& key) const;
    void Put(const Key& key, const Place& place);

   private:
    absl::flat_hash_map<Key, Place> places_;
    std::deque<Key> in_order_;
  };
  static uint64_t FrameworkRow(const TimelineRecord& record);  // a hash
  static FlowEdge Edge(const Place& from, const Place& to, std::string_view type);
  Remembered& RememberedOf(LinkKind kind);
  absl::Status TakeLink(const LinkPoint& point, const Place& place, const FlowEdgeTaker& take);
  absl::Status TakeArrows(const FlowEdgeTaker& take);

  const TimelineHeader& header_;
  FrameworkLinks links_;
  Remembered operations_;
  Remembered sequences_;
  Remembered executions_;
  uint64_t forgotten_ = 0;  // edges from a row that had given way
  FrameworkArrows arrows_;
};

}  // namespace neurontrace
