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
// and XSpace. It goes through each batch twice: first every event gets its row and lane, and arrows
// their ends; then events are written. A format says how by overriding the private functions, which
// are declared in the order in which Write calls them. One thread at a time, but for Prepare.
class RowExporter : public Exporter {
 public:
  absl::Status Write(const TimelineBatch& batch) final;

 protected:
  // Where an event of the batch at hand is drawn.
  struct Placement {
    static constexpr uint32_t kNoRow = 0xffffffffu;
    uint32_t row = kNoRow;  // in rows_; kNoRow: it is on no row
    uint32_t lane = 0;
    uint32_t track = 0;        // what the format itself calls the lane, where it sets this
    bool has_length = false;   // a span with a length, and with a lane of its own for it
    bool is_squeezed = false;  // a span with a length for which no lane was left
  };

  RowExporter(Grouping grouping, bool no_flows) : no_flows_(no_flows), rows_(std::move(grouping)) {}

  // To be called first in Begin. `header` must outlive this object.
  void BeginRows(const TimelineHeader& header);
  StreamKind kind_of(uint32_t stream) const { return stream_kinds_[stream]; }
  static void AddWarnings(std::vector<std::string> warnings, ExportSummary& summary);

  const bool no_flows_;
  const TimelineHeader* header_ = nullptr;
  RowModel rows_;
  FrameworkArrows arrows_;
  // The number of the batch's first record: numbers count all records, from 1.
  uint64_t batch_number_ = 1;
  uint64_t squeezed_ = 0;  // spans

 private:
  virtual void StartBatch(const TimelineBatch&) {}
  virtual void SeeStop(const TimelineRecord&) {}
  virtual uint32_t RowOf(const TimelineRecord& record) { return rows_.RowOf(record); }
  // False: spans are shown without their length.
  virtual bool has_room_for_spans() const { return true; }
  // A span or instant has its place. Returns ArrowSpan::place.
  virtual uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) = 0;
  // arrows_.findings() has the batch's arrows.
  virtual void PlaceArrows() = 0;
  // Before each record of any kind is written.
  virtual void Advance(const TimelineRecord&) {}
  virtual absl::Status WriteStop(const TimelineRecord& record) = 0;
  virtual absl::Status WriteHostCounter(const TimelineRecord& record) = 0;
  virtual absl::Status WriteCounter(const TimelineRecord& record) = 0;
  // A span or an instant.
  virtual absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                                  const Placement& placement) = 0;
  virtual absl::Status FlushIfLarge() { return absl::OkStatus(); }
  virtual absl::Status EndBatch(const TimelineBatch& batch) = 0;

  void PlaceRecord(const TimelineRecord& record, uint64_t number, Placement& placement);
  absl::Status WriteRecord(const TimelineRecord& record, uint64_t number,
                           const Placement& placement);

  std::vector<StreamKind> stream_kinds_;  // copied: streams themselves lie far apart in memory
  std::vector<Placement> placements_;     // of the batch at hand
};

}  // namespace neurontrace
