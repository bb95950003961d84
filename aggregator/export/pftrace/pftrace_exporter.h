// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/grouping.h"
#include "aggregator/export/pftrace/clock_tracks.h"
#include "aggregator/export/pftrace/counter_events.h"
#include "aggregator/export/pftrace/derivation.h"
#include "aggregator/export/pftrace/derived_tracks.h"
#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/late_stops.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/pending_ends.h"
#include "aggregator/export/pftrace/shape_plan.h"
#include "aggregator/export/pftrace/slice_arguments.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/export/rows/row_exporter.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Writes a timeline as a Perfetto trace; docs/formats/pftrace.md defines the mapping. What is
// derived from a batch is found in Prepare, ahead of time, or otherwise in Write. Write passes
// through the batch twice: first every record gets its track, then begins and ends are written in
// the order of time. Used by one thread at a time, except for Prepare; the sink and the header must
// outlive it.
class PftraceExporter final : public RowExporter {
 public:
  // Spans begun and not ended, over all rows. Spans beyond are shown without their length.
  static constexpr size_t kPendingEndsMax = size_t{1} << 20;

  // Arrows that wait for the end of the slice that they touch. Arrows beyond are not drawn.
  static constexpr size_t kFlowsAtEndsMax = size_t{1} << 20;

  struct Options {
    Grouping grouping;
    ArgumentDetail arguments = ArgumentDetail::kVendor;
    bool no_flows = false;     // no arrows
    bool no_verdicts = false;  // a part of a trace cannot be judged alone
    bool compresses_packets = false;
  };
  PftraceExporter(Options options, ByteSink& sink);

  absl::Status Begin(const TimelineHeader& header) override;
  bool prepares() const override { return true; }
  void Prepare(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override { return FinishAt(UINT64_MAX, summary); }
  // Finishes a trace that continues in another file from `end_ns` on: spans that continue there
  // have their whole length here, and of events without a length only earlier ones are written.
  absl::Status FinishAt(uint64_t end_ns, ExportSummary& summary);
  uint64_t bytes_written() const override { return out_.bytes_written(); }

  // Returns the part of bytes_written() that is not in the sink yet.
  uint64_t bytes_buffered() const { return out_.bytes_buffered(); }

 private:
  // Arrows that touch an event. Perfetto reads one `incoming` for each event, and lets several
  // arrows of one id end at different slices. The others are ids that two slices share, in either
  // order.
  struct TouchingFlows {
    // 0: none.
    uint64_t incoming = 0;
    std::vector<uint64_t> ids;
  };
  using FlowsByNumber = absl::flat_hash_map<uint64_t, TouchingFlows>;

  void WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns);
  // Writes what concerns the trace as a whole: versions, clocks, the certificate and warnings.
  void WriteTraceAttributes(const ClockReport& clocks);
  void WriteCertificate(uint64_t at_ns);
  // Writes the certificate and the warnings known so far, inside the window if there is one.
  void WriteHead();

  void StartBatch(const TimelineBatch& batch) override;
  // The functions below are those of RowExporter, in the order of the calls.
  void SeeStop(const TimelineRecord& record) override { stops_.Add(record); }
  uint32_t RowOf(const TimelineRecord& record) override;
  bool has_room_for_spans() const override { return ends_.size() < kPendingEndsMax; }
  uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) override;
  // Decides where the arrows that the batch completes are written.
  void PlaceArrows() override;
  void Advance(const TimelineRecord& record) override { WriteUntil(record.start_ns); }
  absl::Status WriteStop(const TimelineRecord& record) override;
  absl::Status WriteHostCounter(const TimelineRecord& record) override;
  absl::Status WriteCounter(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status FlushIfLarge() override { return out_.FlushIfLarge(); }
  absl::Status EndBatch(const TimelineBatch& batch) override;

  // Sets derived_batch_ to the results for this batch.
  void AddDerived(const TimelineBatch& batch);
  // Places an arrow's id on the first of its slices.
  void PlaceFirst(const ArrowSpan& span, uint64_t id);
  // Returns false if the arrow cannot be drawn.
  bool PlaceArrow(const ArrowFinding& arrow);
  // Returns the flows of a span's begin or end. Returns nullptr if there is no room for those of an
  // end, or the span has none.
  TouchingFlows* FlowsOf(const ArrowSpan& span, bool at_end);

  // Writes everything that is due up to this time: ends, losses, and what happened to clocks.
  void WriteUntil(uint64_t until_ns);
  // Writes the next item that is not an end, merging losses, clock events and the head by time.
  // Returns false if none is due.
  bool WriteOther(uint64_t until_ns);
  // Adds the attributes of a stop that came separately to those of its start. Returns false if the
  // stop is not in this batch.
  bool AddStop(uint64_t span_id, const SharedShape* start) {
    const TimelineRecord* stop = stops_.Find(span_id);
    if (stop != nullptr) arguments_.WriteStopBeside(start, *stop, plans_, fields_);
    return stop != nullptr;
  }
  // Writes the attributes of a stop whose span was ended before, as an instant.
  void WriteLateStop(const TimelineRecord& stop);
  // Adds a warning about spans without their stop's attributes.
  void WarnOfStops(ExportSummary& summary) const;
  void WriteEnd(const PendingEnds::End& end);
  void WriteLoss(const LossInstant& loss);
  // Returns how many flows the event touches.
  size_t AddFlows(FlowsByNumber& flows, uint64_t number);

  const Options options_;
  // The trace has no rows of the runtime.
  bool is_hardware_only_ = false;
  // The main sequence's; the members below refer to those above them.
  Interner interner_;
  PacketWriter out_;
  TrackTable tracks_;
  EventPlans plans_;
  SliceArguments arguments_;
  CounterEvents counters_;
  TrackEventFields fields_;
  ClockTracks clocks_;
  // Belongs to the thread that prepares, if one does.
  std::optional<Derivation> derivation_;
  std::optional<DerivedTracks> derived_;
  // Of the current batch.
  DerivedBatch derived_batch_;
  size_t next_record_flow_ = 0;
  size_t next_correlation_ = 0;

  // Guards what Prepare, on its thread, passes to Write.
  Mutex prepared_mutex_;
  // For the coming batches, in order.
  std::deque<DerivedBatch> prepared_ NT_GUARDED_BY(prepared_mutex_);
  // Written batches, whose memory is reused.
  std::vector<DerivedBatch> spare_ NT_GUARDED_BY(prepared_mutex_);

  // Losses, clock events and the head are merged into the events by WriteOther.
  std::vector<LossInstant> losses_;  // by time
  size_t next_loss_ = 0;
  uint64_t end_ns_ = UINT64_MAX;  // see FinishAt
  // Assumes that the summary's warnings begin with those of the header.
  size_t warnings_written_ = 0;
  // Reference time of the certificate and of the first warnings.
  uint64_t head_ns_ = 0;
  bool is_head_written_ = false;

  PendingEnds ends_;
  LateStops stops_;
  // Arrows that touch slices, by the number of the slice's record.
  FlowsByNumber begin_flows_;
  FlowsByNumber end_flows_;
  // Ids of arrows whose first slice could not carry them; at most kFlowsAtEndsMax.
  absl::flat_hash_set<uint64_t> lost_first_;
  // Spans that were ended without their stop's attributes.
  uint64_t stops_missed_ = 0;
  uint64_t arrows_not_drawn_ = 0;
  uint64_t arrows_drawn_as_pairs_ = 0;
  // The begin of the current batch: everything that ended before it is written.
  uint64_t batch_begin_ns_ = 0;
  uint64_t flows_at_ends_ = 0;  // ids in end_flows_
};

}  // namespace neurontrace
