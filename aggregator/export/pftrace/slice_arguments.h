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
#include "aggregator/timeline/model_names.h"
#include "aggregator/timeline/record_bounds.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// A time that may be this wrong or more is told to be, even if nobody asked.
inline constexpr uint64_t kTellingBoundNs = 10'000;

// How much is told about each slice.
enum class ArgumentDetail : uint8_t {
  kVendor,      // what the vendor's files tell: identity, time and attributes
  kAttributes,  // what the event brought and what cannot be seen otherwise
};

// Writes the names and the debug annotations of slices and instants. One thread at a time.
class SliceArguments {
 public:
  SliceArguments(ArgumentDetail detail, Interner& interner)
      : detail_(detail), interner_(interner) {}
  void Begin(const TimelineHeader& header);

  // Name, category and annotations of a span or instant on this row.
  void Write(const TimelineRecord& record, TraceRow& row, EventPlans& plans, bool is_squeezed,
             TrackEventFields& out);
  // The attributes of a stop event that came apart from its span.
  void WriteStop(const TimelineRecord& stop, EventPlans& plans, TrackEventFields& out);
  // The same on a slice that has those of its start already; nullptr: whatever these are.
  void WriteStopBeside(const SharedShape* start, const TimelineRecord& stop, EventPlans& plans,
                       TrackEventFields& out);
  void WriteLoss(const Loss& loss, TrackEventFields& out);

 private:
  // Interned names of our own arguments, and other texts that recur.
  struct Names {
    uint64_t generation = 0;
    uint32_t device_profile, duration, id, instance_id, lnc_idx, model_name, name, nc_idx,
        process_id, thread_id, timestamp, timestamp_unit, trace_event_source, worker_gid, open,
        start_lost, squeezed, nrta_seq_id, clock, eps_ns, eps_unknown, ts_raw_ns;
    uint32_t open_category, start_lost_category;
    uint32_t null_value, vendor_value;
  };
  const Names& names();
  void RefreshRow(const TimelineRecord& record, TraceRow& row);
  void WriteModel(const TimelineRecord& record, EventPlans& plans, const ShapePlan& plan,
                  TrackEventFields& out);
  uint32_t ProfileIid(uint64_t model_id);
  void WriteName(const TimelineRecord& record, EventPlans& plans, const ShapePlan& plan,
                 TrackEventFields& out);
  void WriteValues(const std::vector<ArgumentPlan>& arguments, const uint64_t* values,
                   const TimelineRecord& record, EventPlans& plans, TrackEventFields& out);
  void WriteClock(const TimelineRecord& record, TrackEventFields& out);
  void WriteText(uint32_t name_iid, uint64_t string, const TimelineRecord& record,
                 EventPlans& plans, TrackEventFields& out);
  // The model of an event: what it says itself, else what its execution is known to run.
  std::string_view ModelOf(const TimelineRecord& record, const ShapePlan& plan) const;

  const ArgumentDetail detail_;
  Interner& interner_;
  const TimelineHeader* header_ = nullptr;
  std::optional<RecordBounds> bounds_;  // nullopt: nothing is said of clocks
  Names names_;
  ModelNames models_;
  struct Profile {
    uint64_t model_id = 0;
    uint64_t generation = 0;
    uint32_t iid = 0;
  };
  std::array<Profile, 64> profiles_;
  std::string title_;
};

}  // namespace neurontrace
