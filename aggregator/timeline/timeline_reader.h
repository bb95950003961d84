// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/rank_binding.h"
#include "aggregator/timeline/record_extractor.h"
#include "aggregator/timeline/stream_index.h"
#include "aggregator/timeline/timeline_filter.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// Sorts the records of a time slice by start; at equal start the longer first (what encloses comes
// before what it encloses), then as they stood. Keeps its memory; one thread at a time.
class TimeOrder {
 public:
  void Sort(std::vector<TimelineRecord*>& records);

 private:
  struct Item {
    uint64_t key;  // start
    TimelineRecord* record;
  };

  std::vector<Item> items_;
  std::vector<Item> spare_;
};

struct TimelineStream {
  StreamDescription description;
  RankBinding rank;
  // Of a stream with a time of its own: moves its first event to the capture's begin. It has no
  // bound, and is the identity where recorded times are asked for.
  const ClockMap* clock = nullptr;
  // It has an event near enough to the time window that it may matter; else nothing of it is read.
  // Of a mapping file never: what it says is read beforehand (framework_names.h).
  bool is_in_window = false;
};

// Records of one time slice, in the order of their start; at equal start what is longer comes
// first. Owns what they point to; may be handed to another thread.
struct TimelineBatch {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // every later record starts at or after this
  std::vector<TimelineRecord*> records;
  std::vector<std::shared_ptr<const ChunkWindow>> windows;
};

struct TimelineOptions {
  TimelineFilter filter;
  const ClockMaps* clocks = nullptr;  // must outlive the reader; nullptr: every clock is true
  // Streams with a time of their own keep it, however far from all others that is.
  bool keeps_own_time = false;
  size_t window_bytes_max = size_t{160} << 20;  // records held of chunks in the midst of being read
  // Names and texts held of the same chunks, about. Of those beyond half of it only what the slice
  // at hand needs is read, and read again later; at the limit the slice becomes shorter and, where
  // it cannot, events wait (TimelineCounts::moved).
  size_t name_bytes_max = size_t{160} << 20;
  size_t batch_records_target = 4'096;
  // Chunks that may overlap at one time, and events loaded at most for one batch. Beyond, and only
  // where more than these share one nanosecond, chunks wait and their events are moved to the time
  // at which they are reached (TimelineCounts::moved).
  size_t chunks_at_once_max = 16'384;
  size_t batch_events_max = 131'072;
  // Spans that began so long before the time window, or less, are found; of older ones the stop
  // alone is seen.
  uint64_t lookback_ns = 2'000'000'000;
};

// Reads a capture as one ordered sequence of spans, instants, flows and counters: merges all
// streams by reference time, pairs starts with stops inside chunks and across them, and keeps what
// has no partner (open to the end of what is known of its stream; start lost). A chunk is read when
// the timeline comes to its first event, unless the index says that it has no event of the selected
// types, and again where memory allows only a part of it to be held: memory is bounded by
// options.window_bytes_max, options.name_bytes_max and the number of streams, whatever the
// capture's length. A chunk that cannot be read is counted, warned about and passed over.
//
// One thread at a time; the source, the options' clocks and the reader may move between threads
// together.
class TimelineReader {
 public:
  // NOT_FOUND and other errors of the source.
  static absl::StatusOr<std::unique_ptr<TimelineReader>> Open(ChunkSource& source,
                                                              TimelineOptions options);
  TimelineReader(const TimelineReader&) = delete;
  TimelineReader& operator=(const TimelineReader&) = delete;

  const CaptureDescription& capture() const { return capture_; }  // its streams moved to streams()
  std::span<const TimelineStream> streams() const { return streams_; }  // the selected ones
  // Grows while reading.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const TimelineCounts& counts() const { return counts_; }
  uint64_t begin_ns() const { return begin_ns_; }  // reference time of the first selected event
  // A stream of the window has events from before what it looks back to: spans that began there are
  // not shown whole, and not at all where they end behind the window.
  bool has_unseen_past() const { return has_unseen_past_; }
  // Names and texts held of chunks in the midst of being read.
  size_t name_bytes() const { return name_bytes_; }

  // The next batch, reusing the memory of `batch`; false when there are no more. A batch can be
  // without records.
  absl::StatusOr<bool> Next(TimelineBatch& batch);

 private:
  struct OpenWindow {
    std::shared_ptr<ChunkWindow> window;
    size_t next_record = 0;
    bool is_exhausted() const { return next_record == window->records.size(); }
  };
  struct Cursor {
    uint32_t stream = 0;
    uint64_t sequence = 0;
    size_t next_event = 0;  // the first that is in none of the windows
    std::shared_ptr<const ChunkNames> names;
    // One; more while a slice is made, and where device clocks mix the order of records.
    std::vector<OpenWindow> windows;
    // The windows have every record that starts before this; UINT64_MAX: the chunk has no more.
    uint64_t limit_ns = 0;
  };
  struct NextChunk {
    uint64_t first_ns = 0;  // reference
    uint32_t stream = 0;
  };

  TimelineReader(ChunkSource& source, TimelineOptions options);
  absl::Status SelectStreams();
  // Of the capture's first event whose time is known; without any, when the capture was started.
  uint64_t KnownBeginNs() const;
  // One with a time of its own is moved so that its first event is at `begin_ns`.
  const ClockMap& ClockOf(const StreamDescription& stream, uint64_t begin_ns);
  absl::Status OpenStream(uint32_t stream);
  absl::Status PushNextChunk(uint32_t stream);
  // Makes the next chunk a cursor, if the filter may select anything of it.
  absl::Status ActivateChunk();
  absl::Status LoadWindow(Cursor& cursor);
  // Loads windows until the cursor has everything before end_ns, or lowers end_ns to what it has
  // when `room_` or the room for names is used up.
  absl::Status Extend(Cursor& cursor, uint64_t& end_ns);
  absl::Status ExtendCursors(uint64_t& end_ns);
  absl::Status ActivateChunks(uint64_t& end_ns);
  absl::Status PassOverChunk(Cursor& cursor, const absl::Status& status);
  void Gather(TimelineBatch& batch);
  static void GatherFrom(Cursor& cursor, TimelineBatch& batch);
  // Forgets names that no window needs, where there are too many.
  void ForgetNames();
  bool AreNamesTooMany(const ChunkNames& names) const;
  // For the names of a chunk with an event at this time. What is at the present has room of its
  // own, so that it need not wait for what is loaded for later.
  bool HasNameRoom(uint64_t at_ns) const;
  // The earliest reference time of a record whose event has this raw time, or a later one.
  uint64_t EarliestNs(uint32_t stream, uint64_t raw_ns) const;
  size_t WindowEventsMax() const;
  void AdaptSlice(size_t records);

  ChunkSource& source_;
  const TimelineOptions options_;
  const uint64_t shift_max_ns_;  // how far device clocks may move a record from its raw time
  const ClockMap identity_;
  std::deque<ClockMap> own_clocks_;  // streams point into it
  CaptureDescription capture_;
  std::vector<TimelineStream> streams_;
  std::vector<std::string> warnings_;
  TimelineCounts counts_;
  uint64_t begin_ns_ = UINT64_MAX;
  bool has_unseen_past_ = false;

  RecordExtractor extractor_;
  std::vector<StreamIndex> indexes_;     // one a stream
  std::vector<StreamContext> contexts_;  // one a stream
  std::vector<NextChunk> next_chunks_;   // min-heap
  std::vector<Cursor> cursors_;          // chunks the timeline is in the midst of
  uint64_t now_ns_ = 0;                  // where the next slice begins
  uint64_t slice_ns_ = 1;
  size_t room_ = 0;              // events that the slice at hand may still load
  size_t name_bytes_ = 0;        // of the cursors
  size_t slice_name_bytes_ = 0;  // of these, built for the slice at hand
  uint64_t next_serial_ = 1;
  TimeOrder order_;
};

}  // namespace neurontrace
