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
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/timeline/rank_binding.h"
#include "aggregator/timeline/record_extractor.h"
#include "aggregator/timeline/stream_index.h"
#include "aggregator/timeline/time_order.h"
#include "aggregator/timeline/timeline_filter.h"
#include "aggregator/timeline/timeline_record.h"

namespace neurontrace {

// A selected stream of the capture being read. A plain value that points into the reader.
struct TimelineStream {
  StreamDescription description;
  RankBinding rank;
  // Maps raw time to reference time. For a stream with its own time the map moves its first event
  // to the capture's begin and has no bound, or is the identity if recorded times are asked for.
  const ClockMap* clock = nullptr;
  // Whether an event of it is near enough to the time window to matter; else nothing of it is read.
  // Always false for a mapping file, whose entries are read beforehand (framework_names.h).
  bool is_in_window = false;
};

// The records of one time slice, in the order of TimeOrder. Owns what they point to and may be
// handed to another thread while the reader continues.
struct TimelineBatch {
  uint64_t begin_ns = 0;
  // Every later record starts at or after this reference time.
  uint64_t end_ns = 0;
  std::vector<TimelineRecord*> records;
  // Keep the records alive.
  std::vector<std::shared_ptr<const ChunkWindow>> windows;
};

// What to read, and how much memory and lookback to spend. Times are reference nanoseconds.
struct TimelineOptions {
  TimelineFilter filter;
  // Must outlive the reader. nullptr: every clock is taken to be true.
  const ClockMaps* clocks = nullptr;
  // Streams with their own time keep it, however far that is from all others.
  bool keeps_own_time = false;
  // Records held of chunks that are partly read.
  size_t window_bytes_max = size_t{160} << 20;
  // Names and texts held of the same chunks, roughly. From half of it on, only what the current
  // slice needs is read, and read again later. At the limit the slice becomes shorter and, where it
  // cannot, events wait (TimelineCounts::moved).
  size_t name_bytes_max = size_t{160} << 20;
  // Records that a batch should have; the length of slices adapts to it.
  size_t batch_records_target = 4'096;
  // Chunks that may overlap at one time, and events loaded at most for one batch. Only if more than
  // these share one nanosecond, chunks wait, and their events are moved to the time at which they
  // are reached (TimelineCounts::moved).
  size_t chunks_at_once_max = 16'384;
  size_t batch_events_max = 131'072;
  // Spans that began at most this long before the time window are found. Of older ones only the
  // stop is seen.
  uint64_t lookback_ns = 2'000'000'000;
};

// Reads a capture as one ordered sequence of spans, instants, flows and counters. It merges all
// streams by reference time, pairs starts with stops inside chunks and across them, and keeps what
// has no partner (open to the end of what is known of its stream; start lost).
//
// A chunk is read when the timeline reaches its first event, unless the index shows that it has no
// event of the selected types, and again if memory allows only a part of it to be held. Memory is
// bounded by options.window_bytes_max, options.name_bytes_max and the number of streams, whatever
// the capture's length. A chunk that cannot be read is counted, warned about and skipped.
//
// Used by one thread at a time; the source, the options' clocks and the reader may move between
// threads together.
class TimelineReader {
 public:
  // Describes the capture and finds each stream's first chunk. `source` must outlive the reader.
  // Fails with INVALID_ARGUMENT if the time window is empty, and with errors of the source.
  static absl::StatusOr<std::unique_ptr<TimelineReader>> Open(ChunkSource& source,
                                                              TimelineOptions options);
  TimelineReader(const TimelineReader&) = delete;
  TimelineReader& operator=(const TimelineReader&) = delete;

  // Returns the capture, except for its streams, which moved to streams().
  const CaptureDescription& capture() const { return capture_; }
  std::span<const TimelineStream> streams() const { return streams_; }  // the selected ones
  // Warnings of the capture and of this reading. Grows while reading.
  const std::vector<std::string>& warnings() const { return warnings_; }
  const TimelineCounts& counts() const { return counts_; }
  uint64_t begin_ns() const { return begin_ns_; }  // reference time of the first selected event
  // Returns whether a stream in the window has events from before the lookback: spans that began
  // there are not shown whole, and not at all if they end after the window.
  bool has_unseen_past() const { return has_unseen_past_; }
  // Returns the bytes of names and texts held of chunks that are partly read.
  size_t name_bytes() const { return name_bytes_; }

  // Replaces `batch` by the next one, reusing its memory. Returns false at the end of the timeline.
  // A batch may have no records. Fails with errors of the source other than those of single chunks.
  absl::StatusOr<bool> Next(TimelineBatch& batch);

 private:
  // A window with records that are still to be yielded.
  struct OpenWindow {
    std::shared_ptr<ChunkWindow> window;
    size_t next_record = 0;
    bool is_exhausted() const { return next_record == window->records.size(); }
  };
  // A chunk that is partly read: its windows have records at or after now_ns_.
  struct Cursor {
    uint32_t stream = 0;
    uint64_t sequence = 0;
    // The first event that is in none of the windows.
    size_t next_event = 0;
    std::shared_ptr<const ChunkNames> names;
    // Usually one; more while a slice is made, and if device clocks mix the order of records.
    std::vector<OpenWindow> windows;
    // The windows have every record that starts before this. UINT64_MAX: the chunk has no more
    // events.
    uint64_t limit_ns = 0;
  };
  // The next chunk of a stream, which no cursor reads yet.
  struct NextChunk {
    uint64_t first_ns = 0;  // reference
    uint32_t stream = 0;
  };

  TimelineReader(ChunkSource& source, TimelineOptions options);
  // Chooses the streams, binds ranks and clocks, and opens each stream.
  absl::Status SelectStreams();
  // Returns the reference time of the capture's first event whose time is known or, if there is
  // none, when the capture was created.
  uint64_t KnownBeginNs() const;
  // Returns the stream's map. One with its own time is moved so that its first event is at
  // `begin_ns`.
  const ClockMap& ClockOf(const StreamDescription& stream, uint64_t begin_ns);
  // Opens the stream's index at the time window, and queues its first chunk.
  absl::Status OpenStream(uint32_t stream);
  // Queues the stream's next chunk, if there is one.
  absl::Status PushNextChunk(uint32_t stream);
  // Makes the earliest queued chunk a cursor if the filter may select any of its events, and queues
  // its stream's next.
  absl::Status ActivateChunk();
  // Reads the cursor's chunk and extracts its next window.
  absl::Status LoadWindow(Cursor& cursor);
  // Loads windows until the cursor has everything before end_ns. Lowers end_ns to what it has if
  // `room_` or the room for names is used up.
  absl::Status Extend(Cursor& cursor, uint64_t& end_ns);
  // Extends every cursor, or activates every chunk that begins before end_ns. Both may lower it.
  absl::Status ExtendCursors(uint64_t& end_ns);
  absl::Status ActivateChunks(uint64_t& end_ns);
  // Skips a chunk that cannot be used, or returns `status` if it is not the chunk's fault.
  absl::Status PassOverChunk(Cursor& cursor, const absl::Status& status);
  // Moves the records before batch.end_ns into the batch, in order.
  void Gather(TimelineBatch& batch);
  static void GatherFrom(Cursor& cursor, TimelineBatch& batch);
  // Drops names that no window needs if there are too many; they are built again later.
  void ForgetNames();
  // Returns whether these names must not be kept beyond their slice.
  bool AreNamesTooMany(const ChunkNames& names) const;
  // Returns whether the names of a chunk with an event at this time may be loaded. Events at the
  // present have room of their own, so that they need not wait for what is loaded for later.
  bool HasNameRoom(uint64_t at_ns) const;
  // Returns the earliest reference time of a record whose event has this raw time or a later one.
  uint64_t EarliestNs(uint32_t stream, uint64_t raw_ns) const;
  // Returns how many events of the loaded chunk one window may have, so that all windows fit.
  size_t WindowEventsMax() const;
  // Makes slices longer or shorter after one with this number of records.
  void AdaptSlice(size_t records);

  ChunkSource& source_;
  const TimelineOptions options_;
  const uint64_t shift_max_ns_;  // how far device clocks may move a record from its raw time
  const ClockMap identity_;
  // A deque, because streams point into it.
  std::deque<ClockMap> own_clocks_;
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
  // Chunks that are partly read.
  std::vector<Cursor> cursors_;
  uint64_t now_ns_ = 0;  // where the next slice begins
  uint64_t slice_ns_ = 1;
  // Events that the current slice may still load.
  size_t room_ = 0;
  // Bytes of the cursors' names.
  size_t name_bytes_ = 0;
  // Those of them that were built for the current slice.
  size_t slice_name_bytes_ = 0;
  uint64_t next_serial_ = 1;
  TimeOrder order_;
};

}  // namespace neurontrace
