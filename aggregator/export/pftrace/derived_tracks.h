// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/derive/bandwidth.h"
#include "aggregator/derive/collectives.h"
#include "aggregator/derive/executions.h"
#include "aggregator/derive/memory_use.h"
#include "aggregator/derive/shape_fields.h"
#include "aggregator/derive/steps.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/track_table.h"

namespace neurontrace {

// What a trace shows that was not recorded but found from what was: steps, collectives over cores,
// device memory in use, bandwidth; on tracks that say "(derived)". It is known only after the time
// that it is about, so it is written to the trace's side sequence. And the arrows between the
// recorded events of one execution, and of one collective. One thread at a time.
class DerivedTracks {
 public:
  // Lanes of one track of slices. Beyond, a slice is left out and counted.
  static constexpr size_t kLanesMax = 64;
  // Memories that have counters, and cores. Further ones have none.
  static constexpr size_t kCounterTracksMax = 65'536;

  // Refers to the header.
  DerivedTracks(const TimelineHeader& header, bool has_flows, TrackTable& tracks,
                PacketWriter& out);

  // Takes a record of the batch at hand: to be called once for each, in their order. The arrow that
  // touches its begin; 0: none. A record of which nothing can be derived costs one look-up.
  uint64_t Take(TimelineRecord& record) {
    const ShapeFields& fields = fields_.Of(*record.shape);
    if (fields.type == DerivedType::kOther) [[likely]]
      return 0;
    return TakeWanted(record, fields);
  }
  // The batch at hand has no more records; every later one starts at or after `end_ns`.
  void EndBatch(uint64_t begin_ns, uint64_t end_ns);
  void Finish();

  uint64_t left_out() const { return left_out_; }

 private:
  // Slices that may overlap: each lane's track, and until when it is taken.
  struct Lane {
    uint32_t uuid = 0;
    uint64_t free_ns = 0;
  };
  struct SliceTrack {
    uint32_t parent_uuid = 0;
    std::string name;
    int32_t rank = 0;
    std::vector<Lane> lanes;
  };
  struct Counter {
    uint32_t uuid = 0;
    int32_t rank = 0;
    std::optional<uint64_t> value;
  };
  struct MemoryTracks {
    uint32_t parent_uuid = 0;
    Counter total;
    std::array<Counter, kHbmCategories> categories;
  };
  struct Extent {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };

  uint64_t TakeWanted(TimelineRecord& record, const ShapeFields& fields);
  uint64_t ExecutionFlow(const TimelineRecord& record, const ShapeFields& fields);
  void WriteAll();
  void WriteSteps();
  void WriteCollectives();
  void WriteMemory();
  void WriteBandwidth();
  void WriteSample(const HbmSample& sample, std::string_view name, uint64_t value,
                   Counter& counter);
  // Starts the event of a slice's begin in fields_of_event_; 0: no lane is left.
  uint32_t LaneFor(SliceTrack& track, const Extent& extent);
  void WriteSlice(uint32_t uuid, const Extent& extent);
  void WriteValue(uint32_t uuid, uint64_t at_ns, uint64_t value);
  uint32_t Name(std::string_view text) { return out_.side_interner().AnnotationName(text); }
  uint32_t Text(std::string_view text) { return out_.side_interner().StringValue(text); }
  std::string CoreLabel(uint32_t stream) const;

  const TimelineHeader& header_;
  const bool has_flows_;
  TrackTable& tracks_;
  PacketWriter& out_;
  ShapeFieldTable fields_;
  ExecutionFinder execution_finder_;
  StepFinder step_finder_;
  CollectiveFinder collective_finder_;
  HbmUse hbm_use_;
  Bandwidth bandwidth_;
  // Of the batch at hand, by what is derived from them.
  TimelineBatch transfers_;
  TimelineBatch allocations_;
  TimelineBatch executing_;  // executions, their preparations, framework events
  std::vector<Execution> executions_;
  std::vector<Step> steps_;
  std::vector<Collective> collectives_;
  std::vector<HbmSample> memory_;
  std::vector<BandwidthSample> samples_;

  absl::flat_hash_map<uint32_t, SliceTrack> step_tracks_;        // by stream
  absl::flat_hash_map<uint32_t, SliceTrack> collective_tracks_;  // by communicator
  absl::flat_hash_map<uint32_t, MemoryTracks> memory_tracks_;    // by memory
  absl::flat_hash_map<std::pair<uint32_t, uint8_t>, Counter> bandwidth_tracks_;
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, uint64_t> execution_flows_;
  uint64_t next_execution_flow_;
  TrackEventFields event_;
  uint64_t left_out_ = 0;
};

}  // namespace neurontrace
