// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/interner.h"
#include "aggregator/export/pftrace/shape_plan.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/export/rows/loss_instants.h"
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// An error bound beyond this, in nanoseconds, is written even if nobody asked for clock arguments.
inline constexpr uint64_t kShownBoundNs = 10'000;

// How much is written about each slice.
enum class ArgumentDetail : uint8_t {
  // What the vendor's files have: identity, times and attributes.
  kVendor,
  // The event's own attributes, and what cannot be seen otherwise.
  kAttributes,
};

// Writes the names and the debug annotations of slices and instants. Used by one thread at a time;
// the interner must outlive it.
// docs/formats/pftrace.md lists the arguments.
class SliceArguments {
 public:
  SliceArguments(ArgumentDetail detail, Interner& interner)
      : detail_(detail), interner_(interner) {}
  // `header` must outlive this object.
  void Begin(const TimelineHeader& header);

  // Writes name, category and annotations of a span or instant on this row. Must be called once for
  // each, in the timeline's order, because it remembers models.
  void Write(const TimelineRecord& record, TraceRow& row, EventPlans& plans, bool is_squeezed,
             TrackEventFields& out);
  // Writes the attributes of a stop event that came separately from its span.
  void WriteStop(const TimelineRecord& stop, EventPlans& plans, TrackEventFields& out);
  // Writes the same for a slice that has the attributes of its start already. If `start` is
  // nullptr, these are not known, and every attribute gets the prefix "stop_".
  void WriteStopBeside(const SharedShape* start, const TimelineRecord& stop, EventPlans& plans,
                       TrackEventFields& out);
  // Writes the name and annotations of a loss or a suspension.
  void WriteLoss(const LossInstant& instant, TrackEventFields& out);

 private:
  // Interned names of our own arguments, and other texts that recur, for one generation.
  struct Names {
    uint64_t generation = 0;
    uint32_t device_profile, duration, id, instance_id, lnc_idx, model_name, name, nc_idx,
        process_id, thread_id, timestamp, timestamp_unit, trace_event_source, worker_gid, open,
        start_lost, squeezed, nrta_seq_id, clock, eps_ns, eps_unknown, ts_raw_ns;
    uint32_t open_category, start_lost_category;
    uint32_t null_value, vendor_value;
  };
  // Returns the names of the interner's present generation.
  const Names& names();
  // Sets the arguments that all events of the row share.
  void RefreshRow(const TimelineRecord& record, TraceRow& row);
  // Writes the argument model_name, if the model is known.
  void WriteModel(const TimelineRecord& record, EventPlans& plans, const ShapePlan& plan,
                  TrackEventFields& out);
  // Returns the interned value of the argument device_profile for a model.
  uint32_t ProfileIid(uint64_t model_id);
  // Writes the title and, for a framework's event, its category.
  void WriteName(const TimelineRecord& record, EventPlans& plans, const ShapePlan& plan,
                 TrackEventFields& out);
  // Writes the planned arguments with their values, which are indexed by ArgumentPlan::key.
  void WriteValues(const std::vector<ArgumentPlan>& arguments, const uint64_t* values,
                   const TimelineRecord& record, EventPlans& plans, TrackEventFields& out);
  // Writes whose time it is, the error bound and the raw stamp, as far as they are worth it.
  void WriteClock(const TimelineRecord& record, TrackEventFields& out);
  // Writes a text of the chunk: interned if it is short.
  void WriteText(uint32_t name_iid, uint64_t string, const TimelineRecord& record,
                 EventPlans& plans, TrackEventFields& out);
  // Returns the model of an event: its own, or else the one that its execution is known to run.
  std::string_view ModelOf(const TimelineRecord& record, const ShapePlan& plan) const;

  const ArgumentDetail detail_;
  Interner& interner_;
  const TimelineHeader* header_ = nullptr;
  // nullopt if clocks are not described.
  std::optional<RecordBounds> bounds_;
  Names names_;
  ModelNames models_;
  // An interned value of device_profile, valid for one generation.
  struct Profile {
    uint64_t model_id = 0;
    uint64_t generation = 0;
    uint32_t iid = 0;
  };
  // By the id of the model modulo the size.
  std::array<Profile, 64> profiles_;
  // Kept to reuse its memory.
  std::string title_;
};

}  // namespace neurontrace
