// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/framework_links.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/view/event_links.h"
#include "aggregator/view/row_levels.h"
#include "aggregator/view/view_collector.h"

namespace neurontrace {

// Finds what one event is connected to within a window: the relations that a Perfetto trace has as
// arrows (FrameworkLinks, FrameworkArrows), the parts of an execution by exec_id and core, and the
// other ranks of a collective (CollectiveFinder). docs/formats/view_api.md defines them. Keeps only
// events that may be an end. Used by one thread at a time.
class LinkCollector final : public ViewCollector {
 public:
  // What is looked for, as each needs other streams and another window.
  enum class Scope : uint8_t {
    kEvent,       // the event alone
    kCauses,      // what caused it and what it caused, within its instance
    kCollective,  // the other ranks of its collective
  };
  // `exec_id` is the event's if it is known: spans of the same core with it are kept.
  LinkCollector(Scope scope, const EventId& event, std::optional<uint64_t> exec_id);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;

  // Returns what was found and leaves the collector empty. Requires that the export is finished.
  EventLinks Take() { return std::move(found_); }
  // Returns how many events were not kept because there were too many: links to them are missing.
  uint64_t events_not_kept() const { return events_not_kept_; }

 private:
  // An event that may be an end of a link.
  struct Node {
    LinkedEvent event;
    uint32_t stream = 0;  // index
    uint32_t row = 0;     // of the RowModel
    uint8_t flags = 0;
    bool is_span = false;
    std::optional<uint64_t> nrta_seq_id;
  };
  // The part of a node in a chain of FrameworkLinks.
  struct Part {
    LinkPoint point;
    uint32_t node = 0;
  };
  // The two ends of an arrow of a framework's file, by the number of their spans.
  struct Arrow {
    uint64_t from = 0;
    uint64_t to = 0;
  };

  void PlaceArrows() override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status EndBatch(const TimelineBatch& batch) override;

  bool IsEvent(const TimelineRecord& record) const;
  // Returns the index of the new node, or nullopt at the limit.
  std::optional<uint32_t> AddNode(const TimelineRecord& record, const Placement& placement,
                                  uint8_t depth);
  // Keeps the event's own collective of those that were closed, and forgets the others.
  void TakeClosed();
  // Each adds the links of one kind to found_, or the reason why there is none.
  void AddChains();
  void AddChain(const Part& own);
  void AddParts();
  void AddArrows();
  void AddCollective();
  void AddMissing();
  void AddLink(std::string_view kind, LinkDirection direction, bool is_direct, uint32_t node);
  // Returns the event of a node with its row.
  LinkedEvent EventOf(uint32_t node);
  bool HasLink(std::string_view kind, LinkDirection direction) const;
  const Node& own() const { return nodes_[*own_node_]; }

  const Scope scope_;
  const EventId event_;
  const std::optional<uint64_t> exec_id_;
  EventAttributes attributes_;
  ShapeFieldTable fields_;
  std::optional<FrameworkLinks> links_;
  std::optional<CollectiveFinder> collectives_;
  std::vector<RowLevels> levels_;  // by row
  std::vector<Node> nodes_;
  absl::flat_hash_map<uint64_t, uint32_t> node_of_number_;  // of spans in framework files
  std::vector<Part> parts_;
  std::vector<uint32_t> executing_;  // nodes with the event's exec_id on its core
  std::vector<Arrow> arrow_list_;
  absl::flat_hash_map<uint64_t, uint64_t> starts_;      // arrows without an end: id, number
  absl::flat_hash_map<uint64_t, uint64_t> waiting_;     // arrows without a start: id, number
  std::vector<std::pair<uint64_t, uint32_t>> members_;  // collective, node
  std::optional<Collective> own_collective_;
  std::vector<Collective> closed_;
  std::optional<uint32_t> own_node_;
  uint64_t own_number_ = 0;  // of the record; 0: not found
  uint64_t own_collective_number_ = 0;
  uint64_t events_not_kept_ = 0;
  // Of all links, those beyond the limit as well.
  std::vector<std::pair<std::string_view, LinkDirection>> kinds_;
  EventLinks found_;
};

}  // namespace neurontrace
