// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "aggregator/export/export_insight.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/pftrace/derivation.h"
#include "aggregator/export/pftrace/event_fields.h"
#include "aggregator/export/pftrace/packet_writer.h"
#include "aggregator/export/pftrace/track_table.h"
#include "aggregator/insight/insight_report.h"

namespace neurontrace {

// Writes the results of a Derivation on tracks named "(derived)". They are known only after the
// time that they concern, so they go to the trace's side sequence. Used by one thread at a time.
class DerivedTracks {
 public:
  // Lanes of one track of slices. Slices beyond are omitted and counted.
  static constexpr size_t kLanesMax = 64;
  // Memories, and cores with directions, that have counters. Further ones are omitted and counted.
  static constexpr size_t kCounterTracksMax = 65'536;

  // All references must outlive this object. `bin_ns` is the length of a bandwidth sample.
  DerivedTracks(const TimelineHeader& header, uint64_t bin_ns, TrackTable& tracks,
                PacketWriter& out);

  // Batches must be written in the order in which they were derived.
  void Write(const DerivedBatch& batch);

  // Slices and samples that were omitted because of a limit.
  uint64_t left_out() const { return left_out_; }

 private:
  // A lane's track, and until when it is occupied.
  struct Lane {
    uint32_t uuid = 0;
    // Reference time of the end of its last slice.
    uint64_t free_ns = 0;
  };
  // Slices that may overlap, on as many lanes as they need.
  struct SliceTrack {
    uint32_t parent_uuid = 0;
    // Empty until the first slice.
    std::string name;
    int32_t rank = 0;
    std::vector<Lane> lanes;
  };
  // A counter's track (0: not described yet) and its latest value: equal values are not repeated.
  struct Counter {
    uint32_t uuid = 0;
    int32_t rank = 0;
    std::optional<uint64_t> value;
  };
  // The counters of one device memory, below a heading of their own.
  struct MemoryTracks {
    uint32_t parent_uuid = 0;
    Counter total;
    std::array<Counter, kHbmCategories> categories;
  };
  // The time of a slice, in reference time.
  struct Extent {
    uint64_t start_ns = 0;
    uint64_t end_ns = 0;
  };

  // Each writes one kind of results, describing tracks when they are first needed.
  void WriteSteps(const std::vector<Step>& steps);
  void WriteCollectives(const std::vector<Collective>& collectives);
  void WriteMemory(const std::vector<HbmSample>& memory);
  void WriteBandwidth(const std::vector<BandwidthSample>& samples);
  // Writes verdicts on a track of each suspect's core, and on a track of the whole trace those that
  // name nobody, refusals, and what was judged.
  void WriteAnswer(const CaptureAnswer& answer);
  void WriteVerdict(const Verdict& verdict, const InsightLine& line);
  void WriteRefusal(const Refusal& refusal, const InsightLine& line, uint32_t uuid);
  // Adds the arguments of a verdict to event_.
  void AddFigures(const Verdict& verdict, const InsightLine& line);
  // Writes the value of one counter of a sample's memory, unless it has not changed.
  void WriteSample(const HbmSample& sample, std::string_view name, uint64_t value,
                   Counter& counter);
  // Returns the track of a free lane, or 0 if none is left.
  uint32_t LaneFor(SliceTrack& track, const Extent& extent);
  // Write the event in event_, or a counter's value, to the side sequence.
  void WriteSlice(uint32_t uuid, const Extent& extent);
  void WriteValue(uint32_t uuid, uint64_t at_ns, uint64_t value);
  // Intern texts for the side sequence.
  uint32_t Name(std::string_view text) { return out_.side_interner().AnnotationName(text); }
  uint32_t Text(std::string_view text) { return out_.side_interner().StringValue(text); }
  // Returns where the trace begins, for what concerns all of it.
  uint64_t FirstShownNs() const;
  // Adds an argument with a text that hardly recurs to event_.
  void AddText(std::string_view name, std::string_view text);
  // Returns the label of a stream's core or file in names of tracks.
  std::string CoreLabel(uint32_t stream) const;

  const TimelineHeader& header_;
  const uint64_t bin_ns_;
  TrackTable& tracks_;
  PacketWriter& out_;
  // By HbmSample::hbm.
  std::vector<HbmIdentity> memories_;
  absl::flat_hash_map<uint32_t, SliceTrack> step_tracks_;        // by stream
  absl::flat_hash_map<uint32_t, SliceTrack> collective_tracks_;  // by communicator
  absl::flat_hash_map<uint32_t, SliceTrack> verdict_tracks_;     // by stream
  SliceTrack answer_track_;
  absl::flat_hash_map<uint32_t, MemoryTracks> memory_tracks_;  // by memory
  // By stream and direction.
  absl::flat_hash_map<std::pair<uint32_t, uint8_t>, Counter> bandwidth_tracks_;
  // The event that is being written, kept to reuse its memory.
  TrackEventFields event_;
  uint64_t left_out_ = 0;
};

}  // namespace neurontrace
