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
#include "aggregator/export/pftrace/derivation.h"
#include "aggregator/export/pftrace/derived_tracks.h"
#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/shape_plan.h"
#include "aggregator/export/pftrace/slice_arguments.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/export/rows/row_exporter.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// The ends of spans that have begun, given out in the order of time; of two at one time that of the
// span begun later, which is the inner one, comes first. One thread at a time.
class PendingEnds {
 public:
  struct End {
    uint64_t key = 0;      // its time
    uint64_t number = 0;   // of the span, growing from span to span
    uint64_t span_id = 0;  // where its stop's attributes come apart from it; else 0
    uint32_t track_uuid = 0;
  };

  // Starts the slice that ends at `until_ns`: Add the ends of all spans that begin in it, then
  // Seal.
  void StartSlice(uint64_t until_ns);
  void Add(const End& end) {
    if (end.key < until_ns_) {
      due_.push_back(end);
    } else {
      AddLater(end);
    }
  }
  void Seal();

  // The next end of the slice; nullptr when there is none left.
  const End* next() const { return next_ == due_.size() ? nullptr : &due_[next_]; }
  void Pop() { ++next_; }

  size_t size() const { return later_.size() + due_.size() - next_; }

 private:
  void AddLater(const End& end);

  uint64_t until_ns_ = 0;
  std::vector<End> later_;  // min-heap
  std::vector<End> due_;
  std::vector<End> spare_;
  size_t next_ = 0;
};

// Stops whose attributes come apart from their spans (kStopFollows): those of the batch at hand,
// and the spans without a length in the trace, which were ended before theirs came. One thread at a
// time.
class LateStops {
 public:
  static constexpr size_t kAwaitedMax = 65'536;  // beyond, a stop is not shown and counted

  // A span that was ended before its stop came.
  struct Ended {
    uint64_t id = 0;  // of its start event
    uint32_t track_uuid = 0;
  };

  void StartBatch() { of_batch_.clear(); }
  void Add(const TimelineRecord& stop) { of_batch_[stop.span_id] = &stop; }
  // The stop of this span in the batch at hand; nullptr: it has none.
  const TimelineRecord* Find(uint64_t span_id) const {
    const auto stop = of_batch_.find(span_id);
    return stop == of_batch_.end() ? nullptr : stop->second;
  }

  // Its stop is in no batch so far.
  void Await(const TimelineRecord& span, uint32_t track_uuid) {
    if (awaited_.size() >= kAwaitedMax) {
      ++beyond_limit_;
    } else {
      awaited_[span.span_id] = {span.id, track_uuid};
    }
  }
  // The span, where it is awaited: then no longer.
  std::optional<Ended> Take(uint64_t span_id) {
    const auto span = awaited_.find(span_id);
    if (span == awaited_.end()) return std::nullopt;
    const Ended ended = span->second;
    awaited_.erase(span);
    return ended;
  }

  // A span whose stop's attributes are to be written with its end, beside those of its start.
  void Expect(const TimelineRecord& span) {
    // Shapes beyond live as long as their chunk alone.
    const bool is_kept = span.shape->number < ShapeTable::kShapesMax;
    start_of_[span.span_id] = is_kept ? span.shape : nullptr;
  }
  // The shape of its start, nullptr: not known any more. Once for each span.
  const SharedShape* TakeStart(uint64_t span_id) {
    const auto start = start_of_.find(span_id);
    if (start == start_of_.end()) return nullptr;
    const SharedShape* const shape = start->second;
    start_of_.erase(start);
    return shape;
  }

  size_t awaited() const { return awaited_.size(); }
  uint64_t beyond_limit() const { return beyond_limit_; }

 private:
  absl::flat_hash_map<uint64_t, const TimelineRecord*> of_batch_;  // by span_id
  absl::flat_hash_map<uint64_t, Ended> awaited_;                   // the same
  absl::flat_hash_map<uint64_t, const SharedShape*> start_of_;     // the same; as many as open ends
  uint64_t beyond_limit_ = 0;
};

// Writes the counters that were recorded: series of framework traces, and samples of hosts. One
// thread at a time.
class CounterEvents {
 public:
  CounterEvents(TrackTable& tracks, PacketWriter& out) : tracks_(tracks), out_(out) {}

  // A counter event of a framework's file.
  void Write(const TimelineRecord& record);
  // A sample of a host's processors or memory.
  void WriteHostSample(const TimelineRecord& record);

 private:
  TrackTable& tracks_;
  PacketWriter& out_;
  TrackEventFields fields_;
};

// Writes a timeline as a Perfetto trace; docs/formats/pftrace.md says what of it becomes what. What
// is derived from a batch is found in Prepare, ahead, or else in Write. There the batch is gone
// through twice: first every record finds its track, then begins and ends are written in the order
// of time.
class PftraceExporter final : public RowExporter {
 public:
  // Spans begun and not ended, over all rows. Beyond, a span is shown without its length.
  static constexpr size_t kPendingEndsMax = size_t{1} << 20;

  // Arrows that wait for the end of the slice that they touch. Beyond, one is not drawn.
  static constexpr size_t kFlowsAtEndsMax = size_t{1} << 20;

  struct Options {
    Grouping grouping;
    ArgumentDetail arguments = ArgumentDetail::kVendor;
    bool no_flows = false;  // no arrows
    bool compresses_packets = false;
  };
  PftraceExporter(Options options, ByteSink& sink);

  absl::Status Begin(const TimelineHeader& header) override;
  bool prepares() const override { return true; }
  void Prepare(const TimelineBatch& batch) override;
  absl::Status Finish(ExportSummary& summary) override { return FinishAt(UINT64_MAX, summary); }
  // The same of a trace that continues in another file from `end_ns` on: spans that go on have
  // their whole length here, and of what has no length only what lies before is written.
  absl::Status FinishAt(uint64_t end_ns, ExportSummary& summary);
  uint64_t bytes_written() const override { return out_.bytes_written(); }

  uint64_t bytes_buffered() const { return out_.bytes_buffered(); }  // of bytes_written()

 private:
  // Arrows that touch an event. Perfetto reads one `incoming` an event, and lets several arrows of
  // one id end at different slices; the rest are ids that two slices have, in either order.
  struct TouchingFlows {
    uint64_t incoming = 0;  // 0: none
    std::vector<uint64_t> ids;
  };
  using FlowsByNumber = absl::flat_hash_map<uint64_t, TouchingFlows>;

  void WriteWarnings(const std::vector<std::string>& warnings, uint64_t at_ns);
  void WriteTraceAttributes(const ClockReport& clocks);
  void WriteCertificate(uint64_t at_ns);
  // The certificate, and the warnings known so far: inside the window, where there is one.
  void WriteHead();

  void StartBatch(const TimelineBatch& batch) override;
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

  void TakeDerived(const TimelineBatch& batch);
  void PlaceFirst(const ArrowSpan& span, uint64_t id);
  // Returns false if it cannot be drawn.
  bool PlaceArrow(const ArrowFinding& arrow);
  // The flows of a span's begin where that is still to be written, else of its end; nullptr where
  // no room is left.
  TouchingFlows* FlowsOf(const ArrowSpan& span, bool at_end);

  void WriteUntil(uint64_t until_ns);  // ends, losses and what clocks did that are due
  bool WriteOther(uint64_t until_ns);  // the next but an end; false: none is due
  // Adds the attributes of a span's stop that came apart from it, beside those of its start; false:
  // not in this batch.
  bool AddStop(uint64_t span_id, const SharedShape* start) {
    const TimelineRecord* stop = stops_.Find(span_id);
    if (stop != nullptr) arguments_.WriteStopBeside(start, *stop, plans_, fields_);
    return stop != nullptr;
  }
  // The attributes of a stop whose span was ended before, as an instant.
  void WriteLateStop(const TimelineRecord& stop);
  void WarnOfStops(ExportSummary& summary) const;
  void WriteEnd(const PendingEnds::End& end);
  void WriteLoss(const LossInstant& loss);
  // Returns how many flows the event touches.
  size_t AddFlows(FlowsByNumber& flows, uint64_t number);

  const Options options_;
  bool is_hardware_only_ = false;  // no rows of the runtime
  Interner interner_;
  PacketWriter out_;
  TrackTable tracks_;
  EventPlans plans_;
  SliceArguments arguments_;
  CounterEvents counters_;
  TrackEventFields fields_;
  ClockTracks clocks_;
  std::optional<Derivation> derivation_;  // of the thread that prepares, where one does
  std::optional<DerivedTracks> derived_;
  DerivedBatch derived_batch_;  // of the batch at hand
  size_t next_record_flow_ = 0;
  size_t next_correlation_ = 0;

  Mutex prepared_mutex_;
  std::deque<DerivedBatch> prepared_ NT_GUARDED_BY(prepared_mutex_);  // for coming batches
  std::vector<DerivedBatch> spare_ NT_GUARDED_BY(prepared_mutex_);    // their memory is used again

  std::vector<LossInstant> losses_;  // by time
  size_t next_loss_ = 0;
  uint64_t end_ns_ = UINT64_MAX;  // see FinishAt
  size_t warnings_written_ = 0;
  uint64_t head_ns_ = 0;
  bool is_head_written_ = false;

  PendingEnds ends_;
  LateStops stops_;
  // Arrows that touch slices: by the number of the slice's record.
  FlowsByNumber begin_flows_;
  FlowsByNumber end_flows_;
  // Ids of arrows whose first slice could not carry them; at most kFlowsAtEndsMax.
  absl::flat_hash_set<uint64_t> lost_first_;
  uint64_t stops_missed_ = 0;  // spans that were ended without the attributes of their stop
  uint64_t arrows_not_drawn_ = 0;
  uint64_t arrows_drawn_as_pairs_ = 0;
  uint64_t batch_begin_ns_ = 0;
  uint64_t flows_at_ends_ = 0;  // ids in end_flows_
};

}  // namespace neurontrace
