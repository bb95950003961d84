// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/device/device_times.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/stream_index.h"
#include "aggregator/timeline/timeline_filter.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {

// The records of a run of consecutive events of one chunk, in the order of their start: what a
// timeline holds in memory of a chunk that it is in the midst of. Batches share in its ownership.
struct ChunkWindow {
  std::vector<TimelineRecord> records;
  std::vector<uint64_t> values;  // what the records' `values` point into
  std::shared_ptr<const ChunkNames> names;
  size_t next_event = 0;  // of the chunk, the first that is not in the window
};

// Pairs starts with stops inside one chunk: a stop closes the latest start of the same event type
// and tracking id that precedes it and is still open. Keeps its memory from chunk to chunk;
// one thread at a time.
class SpanPairing {
 public:
  static constexpr uint16_t kNone = 0xffff;

  // Afterwards partner()[i] is the event that event i is paired with, kNone for every other event.
  void Pair(const DecodedChunk& chunk);
  std::span<const uint16_t> partner() const { return partner_; }

 private:
  struct Slot {
    uint64_t tracking_id = 0;
    uint32_t generation = 0;  // of another chunk: the slot is free
    uint16_t type = 0;
    uint16_t open = kNone;  // the latest open start
  };
  void MapShapesToTypes(const DecodedChunk& chunk);
  void Resize(size_t events);

  std::vector<Slot> slots_;  // open addressing; a power of two, at least twice the events
  uint32_t generation_ = 0;
  std::vector<uint16_t> type_of_shape_;
  std::vector<uint16_t> partner_;
  std::vector<uint16_t> previous_open_;  // of a start: the start that was open under the same key
};

// Counters of a reading, in events unless said otherwise.
struct TimelineCounts {
  uint64_t chunks_read = 0;   // decoded, once for each window that was cut from them
  uint64_t chunks_total = 0;  // of the selected streams, in and out of the time window
  uint64_t events = 0;        // turned into records or into parts of them
  uint64_t spans = 0;
  uint64_t open_spans = 0;
  uint64_t start_lost_spans = 0;
  uint64_t instants = 0;
  uint64_t pairing_given_up = 0;  // open spans whose stop lies beyond the horizon of the search
  uint64_t unreadable_chunks = 0;
  uint64_t moved = 0;  // see TimelineOptions::chunks_at_once_max
};

// What the extraction of one stream's chunks needs to know of the stream.
struct StreamContext {
  uint32_t number = 0;                // index into TimelineReader::streams()
  uint64_t known_until_ns = 0;        // reference time of its last event: where open spans end
  const ClockMap* clock = nullptr;    // of the host
  const ClockMaps* clocks = nullptr;  // where its devices' are; nullptr: no clock is known
  const StreamIdentity* identity = nullptr;
  // A record may begin so much before or after its event's raw time.
  uint64_t shift_max_ns = 0;
  StreamIndex* index = nullptr;
};

// Turns decoded chunks into timeline records, one window of events at a time. One thread at a time.
class RecordExtractor {
 public:
  RecordExtractor(const TimelineFilter& filter, TimelineCounts& counts)
      : filter_(filter), counts_(counts) {}

  // Decodes a chunk: what Extract and BuildNames speak of until the next Load.
  absl::Status Load(std::string columns);
  size_t events() const { return chunk_.size(); }
  size_t values() const;  // of all attributes of all events

  std::shared_ptr<const ChunkNames> BuildNames(uint64_t serial);

  struct EventRange {
    size_t first = 0;
    size_t events_max = 0;
    uint64_t until_ns = UINT64_MAX;  // reference time
  };
  // The records of the events from `first` on, at least one event and about `events_max`, of those
  // that may begin before `until_ns`; cut between two events of different time.
  absl::StatusOr<std::shared_ptr<ChunkWindow>> Extract(const StreamContext& stream,
                                                       std::shared_ptr<const ChunkNames> names,
                                                       const EventRange& range);
  uint64_t raw_timestamp_ns(size_t event) const { return chunk_.timestamp_ns()[event]; }

  // A stop without a start in its chunk becomes a record that Resolve must be called on when the
  // timeline has come to it. It has become kStopAttributes, without attributes, too, so that
  // nobody waits for it any more; or a span that lost its start; or, false, nothing of the time
  // window.
  static bool IsUnresolved(const TimelineRecord& record) {
    return record.kind == RecordKind::kStopAttributes;
  }
  bool Resolve(TimelineRecord& record, StreamIndex& index);

 private:
  enum class Action : uint8_t { kSkip, kStart, kStop, kComplete, kPoint };
  struct ShapePlan {
    Action action = Action::kSkip;
    RecordKind kind = RecordKind::kOther;
    bool has_nrta_seq_id = false;
    bool has_sequence = false;  // nc_local_id
    bool is_odd = false;        // kDurationMadeUpKey
    uint32_t duration_key = 0;
    std::optional<uint32_t> device_key;  // what the device stamped
    std::optional<uint32_t> core_key;
    std::optional<uint32_t> execution_key;
    uint64_t type_hash = 0;
  };

  void PlanShapes();
  ShapePlan PlanShape(const Shape& shape) const;
  absl::Status ExtractEvent(const StreamContext& stream, const ChunkNames& names, size_t event,
                            ClockMapCursor& clock);
  // Times by the device's clock, where both of the record's are known by it; marks the record.
  void UseDeviceClock(const StreamContext& stream, size_t event, size_t values_begin,
                      ClockMapCursor& clock, TimelineRecord& record);
  // What the device would have stamped at `raw_ns`, a later raw time of the same span: the runtime
  // moves both of a span's stamps by the same synchronisation point.
  std::optional<DeviceTimes::HostTime> DeviceEnd(size_t event, uint64_t raw_ns);
  DeviceTimes::Place PlaceOf(size_t event) const;
  uint64_t ValueOf(size_t event, uint32_t key) const {
    return chunk_.column(chunk_.shape_of()[event], key)[chunk_.row_of()[event]];
  }
  absl::Status FinishStart(const StreamContext& stream, size_t event, size_t values_begin,
                           ClockMapCursor& clock, TimelineRecord& record);
  void AppendValues(size_t event);
  // Adds the record unless it lies outside the time window; its values begin at `values_begin`.
  bool Keep(TimelineRecord& record, size_t values_begin);

  const TimelineFilter& filter_;
  TimelineCounts& counts_;
  uint64_t next_span_id_ = 1;

  ShapeTable shapes_;
  std::string columns_;
  DecodedChunk chunk_;
  SpanPairing pairing_;
  DeviceTimes devices_;
  std::vector<ShapePlan> plans_;
  std::vector<TimelineRecord> records_;  // of the window at hand; `values` are offsets until done
  std::vector<size_t> value_offsets_;
  std::vector<uint64_t> values_;
};

}  // namespace neurontrace
