// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/align/device/device_times.h"
#include "aggregator/timeline/shape_table.h"
#include "aggregator/timeline/span_pairing.h"
#include "aggregator/timeline/stream_index.h"
#include "aggregator/timeline/timeline_filter.h"
#include "aggregator/timeline/timeline_record.h"
#include "lib/trace/event_chunk.h"

namespace neurontrace {

// The records of a run of consecutive events of one chunk, in the order of their starts. A timeline
// holds windows rather than whole chunks of those that overlap its present. Batches share its
// ownership, so that records stay valid after the reader has moved on.
struct ChunkWindow {
  std::vector<TimelineRecord> records;
  // What `values` of the records point into. Never resized once they do.
  std::vector<uint64_t> values;
  std::shared_ptr<const ChunkNames> names;
  // Index in the chunk of the first event after the window.
  size_t next_event = 0;
};

// Counters of one reading. They count events unless their comment names another unit.
struct TimelineCounts {
  // Chunks decoded, once for each window that was cut from them.
  uint64_t chunks_read = 0;
  // Chunks of the selected streams, inside and outside the time window.
  uint64_t chunks_total = 0;
  // Events that became records or parts of records.
  uint64_t events = 0;
  uint64_t spans = 0;
  uint64_t open_spans = 0;
  uint64_t start_lost_spans = 0;
  uint64_t instants = 0;
  // Open spans whose stop may lie beyond the horizon of the search.
  uint64_t pairing_given_up = 0;
  uint64_t unreadable_chunks = 0;
  // Records that were moved to a later time because of a limit of TimelineOptions.
  uint64_t moved = 0;
};

// What the extraction of one stream's chunks needs to know of the stream. All pointers are borrowed
// from TimelineReader and live as long as it does.
struct StreamContext {
  // Index into TimelineReader::streams().
  uint32_t number = 0;
  // Reference time of the stream's last event, where open spans end.
  uint64_t known_until_ns = 0;
  // Maps the host's raw time to reference time.
  const ClockMap* clock = nullptr;
  // Has the maps of the worker's devices; nullptr if no clock is known.
  const ClockMaps* clocks = nullptr;
  const StreamIdentity* identity = nullptr;
  // How far a record may begin before or after its event's raw time, because of a device's map.
  uint64_t shift_max_ns = 0;
  StreamIndex* index = nullptr;
};

// Turns decoded chunks into timeline records, one window of events at a time. The filter and the
// counts must outlive it. Used by one thread at a time.
class RecordExtractor {
 public:
  RecordExtractor(const TimelineFilter& filter, TimelineCounts& counts)
      : filter_(filter), counts_(counts) {}

  // Decodes a chunk, which Extract and BuildNames refer to until the next Load. Fails if the
  // columns are malformed; the extractor can then load another chunk.
  absl::Status Load(std::string columns);
  size_t events() const { return chunk_.size(); }
  // Attribute values of all events of the loaded chunk.
  size_t values() const;

  // Copies the loaded chunk's dictionary, because records outlive the chunk's columns.
  std::shared_ptr<const ChunkNames> BuildNames(uint64_t serial);

  // Which events of the loaded chunk Extract turns into records.
  struct EventRange {
    size_t first = 0;
    size_t events_max = 0;
    uint64_t until_ns = UINT64_MAX;  // reference time
  };
  // Returns the records of the events from `first` on: at least one event, about `events_max`, and
  // only those that may begin before `until_ns`. Cuts between two events of different time, so that
  // the next window starts no earlier than this one ends. Fails if the stream's index cannot be
  // read.
  absl::StatusOr<std::shared_ptr<ChunkWindow>> Extract(const StreamContext& stream,
                                                       std::shared_ptr<const ChunkNames> names,
                                                       const EventRange& range);
  uint64_t raw_timestamp_ns(size_t event) const { return chunk_.timestamp_ns()[event]; }

  // A stop without a start in its chunk becomes a record that Resolve must be called on once the
  // timeline has reached it, as only then every span before it is known.
  static bool IsUnresolved(const TimelineRecord& record) {
    return record.kind == RecordKind::kStopAttributes;
  }
  // Makes it kStopAttributes of the span that it ends (even without attributes, so that nobody
  // waits for it any longer), or a span that lost its start. Returns false if the record is outside
  // the time window and must be dropped.
  bool Resolve(TimelineRecord& record, StreamIndex& index);

 private:
  // How events of one shape become records. kPoint is everything without a length.
  enum class Action : uint8_t { kSkip, kStart, kStop, kComplete, kPoint };
  // What is looked up by name once for each shape, so that events need no string comparison.
  struct ShapePlan {
    Action action = Action::kSkip;
    RecordKind kind = RecordKind::kOther;
    bool has_nrta_seq_id = false;
    bool has_sequence = false;  // nc_local_id
    bool is_anomalous = false;  // kDurationMadeUpKey
    uint32_t duration_key = 0;
    // The attribute that the device stamped.
    std::optional<uint32_t> device_key;
    std::optional<uint32_t> core_key;
    std::optional<uint32_t> execution_key;
    uint64_t type_hash = 0;
  };

  void PlanShapes();
  ShapePlan PlanShape(const Shape& shape) const;
  absl::Status ExtractEvent(const StreamContext& stream, const ChunkNames& names, size_t event,
                            ClockMapCursor& clock);
  // Replaces the record's times by those of the device's clock if both are known by it, and marks
  // the record. All or nothing: a start and an end by different clocks would make a wrong length.
  void UseDeviceClock(const StreamContext& stream, size_t event, size_t values_begin,
                      ClockMapCursor& clock, TimelineRecord& record);
  // Returns the host's time of what the device would have stamped at `raw_ns`, a later raw time of
  // the same span: the runtime moves both stamps of a span by the same synchronisation point.
  std::optional<DeviceTimes::HostTime> DeviceEnd(size_t event, uint64_t raw_ns);
  // Returns the core and the place in its ring, which select one of the device's maps.
  DeviceTimes::Place PlaceOf(size_t event) const;
  uint64_t ValueOf(size_t event, uint32_t key) const {
    return chunk_.column(chunk_.shape_of()[event], key)[chunk_.row_of()[event]];
  }
  // Completes a start whose stop is not in its chunk: searches the index for the stop.
  absl::Status FinishStart(const StreamContext& stream, size_t event, size_t values_begin,
                           ClockMapCursor& clock, TimelineRecord& record);
  // Appends the attribute values of an event to values_.
  void AppendValues(size_t event);
  // Returns whether the record overlaps the time window.
  bool IsInside(const TimelineRecord& record) const;
  // Adds the record unless it lies outside the time window; then it removes its values, which begin
  // at `values_begin`.
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
  // Of the window being made. Their values are offsets until it is complete.
  std::vector<TimelineRecord> records_;
  std::vector<size_t> value_offsets_;
  std::vector<uint64_t> values_;
};

}  // namespace neurontrace
