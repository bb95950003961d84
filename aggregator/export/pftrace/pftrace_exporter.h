// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/framework_links.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/pftrace/clock_tracks.h"
#include "aggregator/export/pftrace/counter_events.h"
#include "aggregator/export/pftrace/derived_tracks.h"
#include "aggregator/export/pftrace/flow_links.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/pending_ends.h"
#include "aggregator/export/pftrace/shape_plan.h"
#include "aggregator/export/pftrace/slice_arguments.h"
#include "aggregator/export/pftrace/track_table.h"

namespace neurontrace {

// Writes a timeline as a Perfetto trace; docs/formats/pftrace.md says what of it becomes what. Each
// batch is gone through twice: first every record finds its track, then begins and ends are written
// in the order of time.
class PftraceExporter : public Exporter {
 public:
  // Spans begun and not ended, over all rows. Beyond, a span is shown without its length.
  static constexpr size_t kPendingEndsMax = size_t{1} << 20;

  struct Options {
    Grouping grouping;
    ArgumentDetail arguments = ArgumentDetail::kVendor;
    bool no_flows = false;  // no arrows
    bool compresses_packets = false;
  };
  PftraceExporter(Options options, ByteSink& sink);

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Write(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override { return FinishAt(UINT64_MAX, summary); }
  // The same of a trace that goes on in another file from `end_ns` on: spans that go on have their
  // whole length here, and of what has no length only what lies before is written.
  absl::Status FinishAt(uint64_t end_ns, ExportSummary& summary);
  uint64_t bytes_written() const override { return out_.bytes_written(); }

 private:
  // Where a record of the batch at hand goes.
  struct Placement {
    uint32_t row = kNoRow;
    uint32_t track_uuid = 0;
    bool is_span = false;      // has a length
    bool is_squeezed = false;  // had one, but no lane was left
    uint64_t flow = 0;         // of a collective; 0: none
  };
  static constexpr uint32_t kNoRow = 0xffffffffu;
  static constexpr uint32_t kHostRow = 0xfffffffeu;  // a host's sample: a counter, and no row
  struct LossInstant {
    uint64_t at_ns = 0;
    uint32_t stream = 0;
    Loss loss;
  };

  void CollectLosses();
  void WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns);
  void WriteTraceAttributes(const ClockReport& clocks);
  void WriteCertificate(uint64_t at_ns);

  void PlaceRecord(const TimelineRecord& record, Placement& placement);
  uint32_t RowOf(const TimelineRecord& record, const ShapePlan& plan);
  void NoteWanted(TimelineRecord& record, Placement& placement);
  void PlaceFlow(const TimelineRecord& record, Placement& placement);

  void WriteUntil(uint64_t until_ns);  // ends, losses and what clocks did that are due
  bool WriteOther(uint64_t until_ns);  // the next but an end; false: none is due
  // Adds the attributes of a span's stop that came apart from it, where the batch has them.
  void AddStop(uint64_t span_id);
  void WriteEnd(const PendingEnds::End& end);
  void WriteLoss(const LossInstant& loss);
  void WriteRecord(const TimelineRecord& record, const Placement& placement, uint64_t number);
  void WriteSlice(const TimelineRecord& record, const Placement& placement, uint64_t number);
  void AddFlows(absl::flat_hash_map<uint64_t, std::vector<uint64_t>>& flows, uint64_t number);

  const Options options_;
  const TimelineHeader* header_ = nullptr;
  Interner interner_;
  PacketWriter out_;
  TrackTable tracks_;
  EventPlans plans_;
  SliceArguments arguments_;
  CounterEvents counters_;
  FlowLinks flows_;
  std::optional<FrameworkLinks> links_;  // none: no arrows
  TrackEventFields fields_;
  ClockTracks clocks_;
  std::optional<DerivedTracks> derived_;
  TimelineBatch wanted_;  // records of the batch that something may be derived from

  std::vector<LossInstant> losses_;  // by time
  size_t next_loss_ = 0;
  uint64_t end_ns_ = UINT64_MAX;  // see FinishAt
  size_t warnings_written_ = 0;

  uint64_t batch_number_ = 1;  // of the batch's first record: numbers count all records
  size_t batch_records_placed_ = 0;
  std::vector<Placement> placements_;
  PendingEnds ends_;
  absl::flat_hash_map<uint64_t, const TimelineRecord*> stops_;  // of the batch, by span id
  // Arrows that touch slices: by the number of the slice's record.
  absl::flat_hash_map<uint64_t, std::vector<uint64_t>> begin_flows_;
  absl::flat_hash_map<uint64_t, std::vector<uint64_t>> end_flows_;
  uint64_t squeezed_ = 0;
  uint64_t flows_without_slice_ = 0;
};

}  // namespace neurontrace
