// SPDX-License-Identifier: Apache-2.0
#include "aggregator/timeline/timeline_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "aggregator/timeline/framework_names.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Memory that an event takes in a window beside its attributes: most records are two events.
constexpr size_t kBytesPerEvent = sizeof(TimelineRecord) / 2;
// Fewer events would not be worth decoding a chunk for.
constexpr size_t kWindowEventsMin = 64;
// Unreadable chunks that get a warning of their own; all of them are counted.
constexpr size_t kUnreadableNamedMax = 16;
// About 17 minutes: a capture of rare events still yields batches often enough to show progress.
constexpr uint64_t kSliceMaxNs = 1'000'000'000'000;

// Orders a min-heap of chunks by their first times. The stream's number makes the order, and with
// it every export, the same each time.
bool ComesLater(uint64_t a_ns, uint32_t a_stream, uint64_t b_ns, uint32_t b_stream) {
  return std::pair(a_ns, a_stream) > std::pair(b_ns, b_stream);
}

uint64_t Reference(const ClockMap& clock, uint64_t raw_ns) {
  return std::min(clock.ToReference(raw_ns), kTimeMaxNs);
}

}  // namespace

TimelineReader::TimelineReader(ChunkSource& source, TimelineOptions options)
    : source_(source),
      options_(std::move(options)),
      shift_max_ns_(options_.clocks != nullptr && options_.clocks->has_devices()
                        ? DeviceTimes::kShiftMaxNs
                        : 0),
      extractor_(options_.filter, counts_) {}

absl::StatusOr<std::unique_ptr<TimelineReader>> TimelineReader::Open(ChunkSource& source,
                                                                     TimelineOptions options) {
  if (options.filter.window_start_ns >= options.filter.window_end_ns) {
    return InvalidArgument("export: the time window ends at {} ns, not after its start at {} ns",
                           options.filter.window_end_ns, options.filter.window_start_ns);
  }
  std::unique_ptr<TimelineReader> reader(new TimelineReader(source, std::move(options)));
  RETURN_IF_ERROR(reader->SelectStreams());
  return reader;
}

uint64_t TimelineReader::KnownBeginNs() const {
  uint64_t begin_ns = UINT64_MAX;
  for (const StreamDescription& stream : capture_.streams) {
    if (stream.events == 0 || stream.has_own_time() || IsFrameworkMapping(stream.identity) ||
        // Host samples begin before the workers' events and say nothing of when those began.
        stream.identity.kind == StreamKind::kHost) {
      continue;
    }
    const ClockMap& clock = options_.clocks == nullptr
                                ? identity_
                                : options_.clocks->For(stream.identity.worker, stream.clock_domain);
    begin_ns = std::min(begin_ns, Reference(clock, stream.first_timestamp_ns));
  }
  return begin_ns == UINT64_MAX ? capture_.id.CreatedRealtimeNs() : begin_ns;
}

const ClockMap& TimelineReader::ClockOf(const StreamDescription& stream, uint64_t begin_ns) {
  if (stream.has_own_time()) {
    if (options_.keeps_own_time) return identity_;
    return own_clocks_.emplace_back(
        OwnTimeClock(stream, options_.filter.own_time_begin_ns.value_or(begin_ns)));
  }
  if (options_.clocks == nullptr) return identity_;
  return options_.clocks->For(stream.identity.worker, stream.clock_domain);
}

absl::Status TimelineReader::SelectStreams() {
  ASSIGN_OR_RETURN(capture_, source_.Describe());
  warnings_ = capture_.warnings;
  const uint64_t known_begin_ns = KnownBeginNs();
  if (auto warning = OwnTimeWarning(capture_.streams, options_.filter, options_.keeps_own_time)) {
    warnings_.push_back(*std::move(warning));
  }
  std::vector<StreamDescription> selected;
  for (StreamDescription& stream : capture_.streams) {
    if (options_.filter.SelectsStream(stream)) selected.push_back(std::move(stream));
  }
  capture_.streams.clear();
  auto bindings = BindRanks(selected, warnings_);
  assert(bindings.size() == selected.size());
  uint64_t events = 0;
  uint64_t end_ns = 0;
  for (size_t i = 0; i < selected.size(); ++i) {
    const StreamDescription& stream = selected[i];
    const ClockMap* clock = &ClockOf(stream, known_begin_ns);
    // The entries of a mapping file have no time: they make nothing begin earlier or last longer.
    const bool is_mapping = IsFrameworkMapping(stream.identity);
    if (!is_mapping) counts_.chunks_total += stream.chunks;
    if (stream.events > 0 && !is_mapping) {
      events += stream.events;
      begin_ns_ =
          std::min(begin_ns_,
                   Reference(*clock, SubtractSaturating(stream.first_timestamp_ns, shift_max_ns_)));
      end_ns = std::max(end_ns, Reference(*clock, stream.last_timestamp_ns));
    }
    streams_.push_back({std::move(selected[i]), std::move(bindings[i]), clock});
  }
  if (events == 0) begin_ns_ = 0;
  const double ns_per_event =
      end_ns > begin_ns_ ? static_cast<double>(end_ns - begin_ns_) / static_cast<double>(events)
                         : 1;
  // Clamped before it becomes a whole number: with hardly any events the quotient may exceed its
  // range.
  slice_ns_ = static_cast<uint64_t>(
      std::clamp(ns_per_event * static_cast<double>(options_.batch_records_target), 1.0,
                 static_cast<double>(kSliceMaxNs)));
  // Reserved in full, because contexts_ points into it.
  indexes_.reserve(streams_.size());
  for (uint32_t i = 0; i < streams_.size(); ++i) RETURN_IF_ERROR(OpenStream(i));
  return absl::OkStatus();
}

absl::Status TimelineReader::OpenStream(uint32_t stream) {
  TimelineStream& opened = streams_[stream];
  assert(opened.clock != nullptr && contexts_.size() == stream);
  // Contexts point into it.
  assert(indexes_.size() == stream && indexes_.size() < indexes_.capacity());
  const ClockMap& clock = *opened.clock;
  const uint64_t start_ns = options_.filter.window_start_ns;
  const uint64_t from_ns = start_ns > options_.lookback_ns ? start_ns - options_.lookback_ns : 0;
  const uint64_t end_ns = options_.filter.window_end_ns;
  // Maps are not exact inverses under a device's clock, hence the margin on both sides: chunks are
  // chosen by it, records by their exact times.
  const uint64_t from_raw_ns =
      from_ns == 0 ? 0 : SubtractSaturating(clock.ToRaw(from_ns), shift_max_ns_);
  const uint64_t until_raw_ns =
      end_ns == UINT64_MAX ? UINT64_MAX : AddSaturating(clock.ToRaw(end_ns), shift_max_ns_);
  opened.is_in_window = opened.description.events > 0 &&
                        !IsFrameworkMapping(opened.description.identity) &&
                        opened.description.last_timestamp_ns >= from_raw_ns &&
                        opened.description.first_timestamp_ns < until_raw_ns;
  // Samples of hosts are not spans: none of them reaches from the past into the window.
  if (opened.is_in_window && opened.description.identity.kind != StreamKind::kHost &&
      opened.description.first_timestamp_ns < from_raw_ns) {
    has_unseen_past_ = true;
  }
  indexes_.emplace_back(source_, opened.description, options_.filter,
                        StreamIndex::RawWindow{from_raw_ns, until_raw_ns});
  contexts_.push_back({.number = stream,
                       .known_until_ns = Reference(clock, opened.description.last_timestamp_ns),
                       .clock = &clock,
                       .clocks = options_.clocks,
                       .identity = &opened.description.identity,
                       .shift_max_ns = shift_max_ns_,
                       .index = &indexes_.back()});
  return opened.is_in_window ? PushNextChunk(stream) : absl::OkStatus();
}

absl::Status TimelineReader::PushNextChunk(uint32_t stream) {
  assert(stream < indexes_.size());
  RETURN_IF_ERROR(indexes_[stream].Settle());
  const StreamIndex::Chunk* next = indexes_[stream].next();
  if (next == nullptr) return absl::OkStatus();
  next_chunks_.push_back({EarliestNs(stream, next->first_timestamp_ns), stream});
  std::push_heap(next_chunks_.begin(), next_chunks_.end(), [](const auto& a, const auto& b) {
    return ComesLater(a.first_ns, a.stream, b.first_ns, b.stream);
  });
  return absl::OkStatus();
}

uint64_t TimelineReader::EarliestNs(uint32_t stream, uint64_t raw_ns) const {
  return Reference(*streams_[stream].clock, SubtractSaturating(raw_ns, shift_max_ns_));
}

size_t TimelineReader::WindowEventsMax() const {
  // Each stream has usually one chunk that is partly read; the memory is shared evenly.
  const size_t sharers = std::max(cursors_.size() + 1, streams_.size());
  const size_t chunk_events = std::max<size_t>(extractor_.events(), 1);
  const size_t event_bytes = kBytesPerEvent + extractor_.values() * sizeof(uint64_t) / chunk_events;
  const size_t share = std::clamp<size_t>(options_.window_bytes_max / sharers / event_bytes,
                                          kWindowEventsMin, limits::kChunkEventsMax);
  // As few windows as that allows, all of equal size: a last one of few events would cost decoding
  // the whole chunk once more.
  assert(share > 0);
  const size_t windows = (chunk_events + share - 1) / share;
  return (chunk_events + windows - 1) / windows;
}

absl::Status TimelineReader::LoadWindow(Cursor& cursor) {
  std::string columns;
  RETURN_IF_ERROR(
      source_.ReadColumns(streams_[cursor.stream].description.number, cursor.sequence, columns));
  RETURN_IF_ERROR(extractor_.Load(std::move(columns)));
  RecordExtractor::EventRange range{.first = cursor.next_event, .events_max = WindowEventsMax()};
  if (cursor.names == nullptr) {
    cursor.names = extractor_.BuildNames(next_serial_++);
    name_bytes_ += cursor.names->bytes;
    slice_name_bytes_ += cursor.names->bytes;
  }
  // Only what this slice needs: its events may be years apart, and each would keep the names.
  if (AreNamesTooMany(*cursor.names)) {
    const bool is_beyond = name_bytes_ > options_.name_bytes_max;
    range.until_ns = AddSaturating(now_ns_, is_beyond ? 1 : slice_ns_);
  }
  ASSIGN_OR_RETURN(auto window, extractor_.Extract(contexts_[cursor.stream], cursor.names, range));
  assert(window->next_event >= range.first && window->next_event <= extractor_.events());
  cursor.next_event = window->next_event;
  cursor.limit_ns = window->next_event < extractor_.events()
                        ? EarliestNs(cursor.stream, extractor_.raw_timestamp_ns(window->next_event))
                        : UINT64_MAX;
  room_ -= std::min(room_, window->next_event - range.first);
  cursor.windows.push_back({std::move(window)});
  return absl::OkStatus();
}

absl::Status TimelineReader::PassOverChunk(Cursor& cursor, const absl::Status& status) {
  // A damaged chunk is no reason to withhold the others, while a failing source is.
  if (status.code() != absl::StatusCode::kInvalidArgument &&
      status.code() != absl::StatusCode::kDataLoss &&
      status.code() != absl::StatusCode::kNotFound) {
    return status;
  }
  source_.ReportUnreadable(streams_[cursor.stream].description.number, cursor.sequence, status);
  if (++counts_.unreadable_chunks <= kUnreadableNamedMax) {
    warnings_.push_back(fmt::format(
        "chunk {} of {} cannot be read and is omitted: {}", cursor.sequence,
        ToString(streams_[cursor.stream].description.identity), std::string(status.message())));
  }
  cursor.limit_ns = UINT64_MAX;
  return absl::OkStatus();
}

absl::Status TimelineReader::Extend(Cursor& cursor, uint64_t& end_ns) {
  while (cursor.limit_ns < end_ns) {
    // A cursor at the present must advance whatever the room, or the timeline would stand still.
    if (room_ == 0 && cursor.limit_ns > now_ns_) {
      end_ns = cursor.limit_ns;
      return absl::OkStatus();
    }
    // If its names must be built, it waits even at the present once this slice has loaded others.
    // The end stays after now_ns_, so that each slice advances.
    if (cursor.names == nullptr && !HasNameRoom(cursor.limit_ns)) {
      end_ns = std::min(end_ns, std::max(cursor.limit_ns, AddSaturating(now_ns_, 1)));
      return absl::OkStatus();
    }
    if (const absl::Status status = LoadWindow(cursor); !status.ok()) {
      return PassOverChunk(cursor, status);
    }
  }
  return absl::OkStatus();
}

absl::Status TimelineReader::ActivateChunk() {
  assert(!next_chunks_.empty());
  std::pop_heap(next_chunks_.begin(), next_chunks_.end(), [](const auto& a, const auto& b) {
    return ComesLater(a.first_ns, a.stream, b.first_ns, b.stream);
  });
  const NextChunk next = next_chunks_.back();
  next_chunks_.pop_back();
  assert(indexes_[next.stream].next() != nullptr);
  const StreamIndex::Chunk& chunk = *indexes_[next.stream].next();
  if (chunk.is_selected) {
    cursors_.push_back(
        {.stream = next.stream, .sequence = chunk.sequence, .limit_ns = next.first_ns});
  }
  indexes_[next.stream].Pop();
  return PushNextChunk(next.stream);
}

absl::Status TimelineReader::ExtendCursors(uint64_t& end_ns) {
  for (Cursor& cursor : cursors_) RETURN_IF_ERROR(Extend(cursor, end_ns));
  return absl::OkStatus();
}

absl::Status TimelineReader::ActivateChunks(uint64_t& end_ns) {
  while (!next_chunks_.empty() && next_chunks_.front().first_ns < end_ns) {
    // A chunk without selected events needs no room: it only lets its stream advance.
    if (!indexes_[next_chunks_.front().stream].next()->is_selected) {
      RETURN_IF_ERROR(ActivateChunk());
      continue;
    }
    if (room_ == 0 || !HasNameRoom(next_chunks_.front().first_ns) ||
        cursors_.size() >= options_.chunks_at_once_max) {
      if (next_chunks_.front().first_ns > now_ns_) {
        end_ns = next_chunks_.front().first_ns;
        return absl::OkStatus();
      }
      // The chunk is at the present and has to wait: the slice ends right after now_ns_, which lets
      // cursors finish. Its events are moved to the time at which it is reached. Without any cursor
      // there would be nothing to wait for, and the chunk is read despite the limit.
      if (!cursors_.empty()) {
        end_ns = std::min(end_ns, AddSaturating(now_ns_, 1));
        return absl::OkStatus();
      }
    }
    RETURN_IF_ERROR(ActivateChunk());
    RETURN_IF_ERROR(Extend(cursors_.back(), end_ns));
  }
  return absl::OkStatus();
}

void TimelineReader::GatherFrom(Cursor& cursor, TimelineBatch& batch) {
  for (OpenWindow& open : cursor.windows) {
    auto& records = open.window->records;
    const size_t first = open.next_record;
    while (!open.is_exhausted() && records[open.next_record].start_ns < batch.end_ns) {
      batch.records.push_back(&records[open.next_record++]);
    }
    if (open.next_record > first) batch.windows.push_back(open.window);
    assert(open.next_record <= records.size());
  }
  std::erase_if(cursor.windows, [](const OpenWindow& open) { return open.is_exhausted(); });
}

// True from half of the limit on, so that the other half serves what a slice needs for itself.
// Names smaller than a cursor's even share of that half are exempt: all of them together fit into
// it.
bool TimelineReader::AreNamesTooMany(const ChunkNames& names) const {
  const size_t kept_max = options_.name_bytes_max / 2;
  return name_bytes_ > kept_max && names.bytes > kept_max / options_.chunks_at_once_max;
}

bool TimelineReader::HasNameRoom(uint64_t at_ns) const {
  if (name_bytes_ < options_.name_bytes_max) return true;
  return at_ns <= now_ns_ &&
         (slice_name_bytes_ == 0 || slice_name_bytes_ < options_.name_bytes_max / 2);
}

// Names with open windows stay: their records point into them.
void TimelineReader::ForgetNames() {
  if (name_bytes_ <= options_.name_bytes_max / 2) return;
  for (Cursor& cursor : cursors_) {
    if (cursor.names == nullptr || !cursor.windows.empty()) continue;
    if (!AreNamesTooMany(*cursor.names)) continue;
    assert(name_bytes_ >= cursor.names->bytes);
    name_bytes_ -= cursor.names->bytes;
    cursor.names = nullptr;
  }
}

// A stop without its start can be judged only once everything before it has been loaded: hence
// resolving is the last step.
void TimelineReader::Gather(TimelineBatch& batch) {
  for (Cursor& cursor : cursors_) GatherFrom(cursor, batch);
  std::erase_if(cursors_, [this](const Cursor& cursor) {
    // The windows in the batch keep their names alive; only the reader's account ends here.
    if (cursor.limit_ns != UINT64_MAX || !cursor.windows.empty()) return false;
    assert(cursor.names == nullptr || name_bytes_ >= cursor.names->bytes);
    if (cursor.names != nullptr) name_bytes_ -= cursor.names->bytes;
    return true;
  });
  ForgetNames();
  for (TimelineRecord* record : batch.records) {
    // Its chunk had to wait. Order is a promise of the batches, so the record moves to the present.
    if (record->start_ns >= batch.begin_ns) continue;
    record->start_ns = batch.begin_ns;
    record->end_ns = std::max(record->end_ns, record->start_ns);
    ++counts_.moved;
  }
  order_.Sort(batch.records);
  assert(batch.records.empty() || (batch.records.front()->start_ns >= batch.begin_ns &&
                                   batch.records.back()->start_ns < batch.end_ns));
  std::erase_if(batch.records, [this](TimelineRecord* record) {
    return RecordExtractor::IsUnresolved(*record) &&
           !extractor_.Resolve(*record, indexes_[record->stream]);
  });
}

void TimelineReader::AdaptSlice(size_t records) {
  const size_t target = options_.batch_records_target;
  if (records < target / 2) {
    slice_ns_ = std::min(kSliceMaxNs, slice_ns_ + slice_ns_ / 2 + 1);
  } else if (records > 2 * target) {
    slice_ns_ = std::max<uint64_t>(1, slice_ns_ / 2);
  }
}

absl::StatusOr<bool> TimelineReader::Next(TimelineBatch& batch) {
  batch.records.clear();
  batch.windows.clear();
  if (cursors_.empty() && next_chunks_.empty()) return false;
  // Jumps to the next record of any stream: a gap may last years, and slices at most minutes.
  uint64_t next_ns = next_chunks_.empty() ? kTimeMaxNs : next_chunks_.front().first_ns;
  for (const Cursor& cursor : cursors_) {
    next_ns = std::min(next_ns, cursor.limit_ns);
    for (const OpenWindow& open : cursor.windows) {
      next_ns = std::min(next_ns, open.window->records[open.next_record].start_ns);
    }
  }
  now_ns_ = std::max(now_ns_, next_ns);
  const uint64_t slice_end_ns = AddSaturating(now_ns_, slice_ns_);
  uint64_t end_ns = slice_end_ns;
  room_ = options_.batch_events_max;
  slice_name_bytes_ = 0;
  // What is at the present is loaded first, because later events may use up the room.
  uint64_t present_end_ns = AddSaturating(now_ns_, 1);
  for (uint64_t* end : {&present_end_ns, &end_ns}) {
    RETURN_IF_ERROR(ExtendCursors(*end));
    RETURN_IF_ERROR(ActivateChunks(*end));
  }
  assert(end_ns >= now_ns_ && end_ns <= slice_end_ns);
  batch.begin_ns = now_ns_;
  batch.end_ns = end_ns;
  const bool has_name_room = HasNameRoom(end_ns);
  Gather(batch);
  // A slice that a limit cut short says nothing about how dense records are.
  if (end_ns == slice_end_ns) {
    AdaptSlice(batch.records.size());
  } else if (!has_name_room) {
    // The next slices are as short, so that no names are loaded that only a later slice needs.
    slice_ns_ = end_ns - now_ns_;
  }
  now_ns_ = end_ns;
  return true;
}

}  // namespace neurontrace
