// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "aggregator/derive/framework_arrows.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/rows/row_model.h"

namespace neurontrace {

// The skeleton of the exporters that draw events on the rows of a RowModel: Perfetto, chrome-json
// and XSpace. It passes through each batch twice: first every event gets its row and lane, and
// arrows get their ends; then events are written. A format overrides the private functions, which
// are declared in the order in which Write calls them. Used by one thread at a time, except for
// Prepare.
class RowExporter : public Exporter {
 public:
  absl::Status Write(const TimelineBatch& batch) final;

 protected:
  // Where an event of the current batch is drawn.
  struct Placement {
    static constexpr uint32_t kNoRow = 0xffffffffu;
    // Index into rows_, or kNoRow.
    uint32_t row = kNoRow;
    uint32_t lane = 0;
    // The format's own name of the lane, if it sets one.
    uint32_t track = 0;
    // A span with a length and a lane of its own for it.
    bool has_length = false;
    // A span with a length for which no lane was left.
    bool is_squeezed = false;
  };

  RowExporter(Grouping grouping, bool no_flows) : no_flows_(no_flows), rows_(std::move(grouping)) {}

  // Called first in Begin. `header` must outlive this object.
  void BeginRows(const TimelineHeader& header);
  StreamKind kind_of(uint32_t stream) const { return stream_kinds_[stream]; }
  static void AddWarnings(std::vector<std::string> warnings, ExportSummary& summary);

  const bool no_flows_;
  const TimelineHeader* header_ = nullptr;
  RowModel rows_;
  FrameworkArrows arrows_;
  // The number of the batch's first record; numbers count all records, from 1.
  uint64_t batch_number_ = 1;
  // Spans for which no lane was left.
  uint64_t squeezed_ = 0;

 private:
  // Called before the first pass.
  virtual void StartBatch(const TimelineBatch&) {}
  // Called for each kStopAttributes in the first pass.
  virtual void SeeStop(const TimelineRecord&) {}
  virtual uint32_t RowOf(const TimelineRecord& record) { return rows_.RowOf(record); }
  // If false, spans are shown without their length.
  virtual bool has_room_for_spans() const { return true; }
  // Called once a span or instant has its place. Returns ArrowSpan::place.
  virtual uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) = 0;
  // Called between the passes; arrows_.findings() has the batch's arrows.
  virtual void PlaceArrows() = 0;
  // Called before each record of any kind is written.
  virtual void Advance(const TimelineRecord&) {}
  virtual absl::Status WriteStop(const TimelineRecord& record) = 0;
  virtual absl::Status WriteHostCounter(const TimelineRecord& record) = 0;
  virtual absl::Status WriteCounter(const TimelineRecord& record) = 0;
  // Writes a span or an instant.
  virtual absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                                  const Placement& placement) = 0;
  virtual absl::Status FlushIfLarge() { return absl::OkStatus(); }
  virtual absl::Status EndBatch(const TimelineBatch& batch) = 0;

  // The two passes over one record.
  void PlaceRecord(const TimelineRecord& record, uint64_t number, Placement& placement);
  absl::Status WriteRecord(const TimelineRecord& record, uint64_t number,
                           const Placement& placement);

  // Copied, because the streams themselves are far apart in memory.
  std::vector<StreamKind> stream_kinds_;
  // Of the current batch.
  std::vector<Placement> placements_;
};

}  // namespace neurontrace
