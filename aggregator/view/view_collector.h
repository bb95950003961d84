// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "aggregator/export/row_source.h"
#include "aggregator/export/rows/row_exporter.h"

namespace neurontrace {

// The base of the collectors that answer the page: exporters without files, on the rows of a
// Perfetto trace with the vendor's default grouping. RunExporter fills a collector, which then
// returns its answer. Everything that not every answer needs does nothing here. Used by one thread
// at a time.
class ViewCollector : public RowExporter {
 public:
  absl::Status Begin(const TimelineHeader& header) override {
    BeginRows(header);
    return absl::OkStatus();
  }
  absl::Status Finish(ExportSummary&) override { return absl::OkStatus(); }
  uint64_t bytes_written() const override { return 0; }
  // Names, times and levels do not depend on what was prepared before the window.
  bool reads_before_window() const override { return false; }
  bool begins_before_window() const override { return false; }

 protected:
  // Rows as in a Perfetto trace have no lanes here: each answer places spans by itself, or not at
  // all. `has_arrows`: arrows of framework files are resolved for PlaceArrows.
  explicit ViewCollector(bool has_arrows = false)
      : RowExporter(*Grouping::Parse({}, {}), /*no_flows=*/!has_arrows) {}

 private:
  bool has_room_for_spans() const override { return false; }
  uint32_t Placed(const TimelineRecord&, uint64_t, Placement&) override { return 0; }
  void PlaceArrows() override {}
  absl::Status WriteStop(const TimelineRecord&) override { return absl::OkStatus(); }
  absl::Status WriteHostCounter(const TimelineRecord&) override { return absl::OkStatus(); }
  absl::Status WriteCounter(const TimelineRecord&) override { return absl::OkStatus(); }
  absl::Status EndBatch(const TimelineBatch&) override { return absl::OkStatus(); }
};

// The base of collectors that need nothing of an event's row but whether it is the hardware's:
// looking rows up would take most of their time.
class SourceCollector : public ViewCollector {
 protected:
  static bool IsHardware(const Placement& placement) {
    return placement.row == static_cast<uint32_t>(RowSource::kHardware);
  }

 private:
  // As RowModel decides, which makes no other difference between sources here.
  uint32_t RowOf(const TimelineRecord& record) final {
    const bool is_hardware = !HasFrameworkEvents(kind_of(record.stream)) &&
                             RowSourceOf(record.start().event_type) == RowSource::kHardware;
    return static_cast<uint32_t>(is_hardware ? RowSource::kHardware : RowSource::kRuntime);
  }
};

}  // namespace neurontrace
