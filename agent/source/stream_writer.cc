// SPDX-License-Identifier: Apache-2.0
#include "agent/source/stream_writer.h"

#include <algorithm>
#include <utility>

#include "lib/base/status.h"

// How it works: rows go into an open chunk until it is full or old. Close gives it the next
// sequence number, the place in the source where the stream continues, and the account of what
// preceded it. Rows before the place where the stream was resumed are counted and not appended.
namespace neurontrace {
namespace {

// The size of an open chunk is computed only this often, as that walks through its columns.
constexpr size_t kCheckEveryTextBytes = 32u << 10;
constexpr uint32_t kCheckEveryEvents = 64;
// A row with this much text gets a chunk of its own, so that a row that no chunk can hold does not
// take others with it.
constexpr size_t kLargeRowBytes = 256u << 10;

// Returns the bytes of all text values of a row.
size_t TextBytes(std::span<const AttributeValue> values) {
  size_t bytes = 0;
  for (const AttributeValue& value : values) bytes += value.text.size();
  return bytes;
}

// Size of a header as it is sent, within a few dozen bytes. An exact size would need the protobuf
// message, which this folder does not know.
size_t ApproximateBytes(const ChunkHeader& header) {
  constexpr size_t kNumbers = 96;
  const WorkerIdentity& worker = header.stream.worker;
  size_t bytes = kNumbers + header.stream.agent_id.size() + worker.instance_id.size() +
                 worker.boot_id.size() + worker.container_id.size() + header.stream.name.size() +
                 header.producer_version.size();
  for (const RankEvidence& evidence : header.rank_evidence) bytes += 12 + evidence.detail.size();
  for (const Loss& loss : header.losses) bytes += 32 + loss.detail.size();
  for (const Remark& remark : header.remarks) {
    bytes += 8;
    for (const std::string& detail : remark.details) bytes += 3 + detail.size();
  }
  // The other capture's id and two times.
  constexpr size_t kSuspension = 40;
  return bytes + 12 * header.losses_before.size() + kSuspension * header.suspensions.size();
}

// Returns true if two losses differ only in their number and times, and may be merged.
bool SameKind(const Loss& a, const Loss& b) {
  return a.place == b.place && a.reason == b.reason && a.events_unknown == b.events_unknown &&
         a.detail == b.detail;
}

// Adds a loss to another. A known and an unknown number make an unknown one. A time of 0 is none.
void Merge(const Loss& from, Loss& into) {
  into.events += from.events;
  into.events_unknown = into.events_unknown || from.events_unknown;
  if (into.events_unknown) into.events = 0;
  if (into.first_timestamp_ns == 0 ||
      (from.first_timestamp_ns != 0 && from.first_timestamp_ns < into.first_timestamp_ns)) {
    into.first_timestamp_ns = from.first_timestamp_ns;
  }
  into.last_timestamp_ns = std::max(into.last_timestamp_ns, from.last_timestamp_ns);
}

}  // namespace

StreamWriter::StreamWriter(const CaptureId& capture_id, StreamIdentity stream, const Clock& clock,
                           ChunkSink& sink, AgentSourceMetrics& metrics, const Options& options)
    : capture_id_(capture_id),
      stream_(std::move(stream)),
      options_(options),
      clock_(clock),
      sink_(sink),
      metrics_(metrics),
      canary_entry_(metrics.canary_watch.Begin(stream_, clock.MonotonicNs())),
      canary_due_ns_(clock.MonotonicNs() + limits::kCanaryFirstNs) {}

StreamWriter::~StreamWriter() { metrics_.canary_watch.End(canary_entry_); }

void StreamWriter::Resume(const StreamCursor& cursor) {
  next_sequence_ = cursor.next_sequence;
  resume_position_ = cursor.source_position;
  resume_skip_ = cursor.source_skip;
  closed_position_ = cursor.source_position;
  closed_skip_ = cursor.source_skip;
  closed_mark_ = sequence_mark_ = cursor.sequence_mark;
  ended_ = cursor.ended;
  // A stream that has ended sends no canaries and must not look stalled.
  if (ended_) metrics_.canary_watch.End(canary_entry_);
  events_before_ = cursor.events_before;
  losses_before_ = cursor.losses_before;
  counts_.read = EventsRead(cursor);
  counts_.stored = cursor.events_before;
  for (const Loss& loss : cursor.losses_before) {
    counts_.lost += loss.events;
    counts_.lost_unknown = counts_.lost_unknown || loss.events_unknown;
  }
}

uint64_t EventsRead(const StreamCursor& cursor) {
  uint64_t read = cursor.events_before;
  for (const Loss& loss : cursor.losses_before) {
    const bool was_row = loss.place == LossPlace::kDecode && loss.reason == LossReason::kLimit;
    // These losses took the place of a row, so they count as read.
    if (was_row) read += loss.events;
  }
  return read;
}

void StreamWriter::SetRankEvidence(std::vector<RankEvidence> evidence) {
  if (evidence.size() > limits::kRankEvidencePerStreamMax) {
    evidence.resize(limits::kRankEvidencePerStreamMax);
  }
  rank_evidence_ = std::move(evidence);
}

void StreamWriter::CountRow(uint64_t position) {
  // Positions ascend, so another position is a new record.
  if (position != row_position_) {
    row_position_ = position;
    rows_in_record_ = 0;
  }
  ++rows_in_record_;
}

bool StreamWriter::AdmitRow(uint64_t position) {
  CountRow(position);
  if (position < resume_position_ ||
      (position == resume_position_ && rows_in_record_ <= resume_skip_)) {
    AgentSourceMetrics::Add(metrics_.events_skipped);
    return false;
  }
  if (ended_) {
    AgentSourceMetrics::Add(metrics_.events_after_end);
    return false;
  }
  ++counts_.read;
  return true;
}

void StreamWriter::RecordOpen(uint64_t position) {
  if (first_position_) return;
  first_position_ = position;
  opened_ns_ = clock_.MonotonicNs();
}

absl::Status StreamWriter::TryAppend(const CachedShape& shape, const EventFields& fields,
                                     std::span<const AttributeValue> values) {
  // Numbers of an earlier generation mean other shapes.
  if (shape_generation_ != shape.generation) {
    shape_ids_.clear();
    shape_generation_ = shape.generation;
  }
  if (shape_ids_.size() <= shape.number) {
    shape_ids_.resize(shape.number + 1, EventChunkBuilder::kNoShape);
  }
  EventChunkBuilder::ShapeId& id = shape_ids_[shape.number];
  // Each chunk has its own table of shapes, which Close resets.
  if (id == EventChunkBuilder::kNoShape) {
    ASSIGN_OR_RETURN(id, builder_.InternShape(shape.shape));
  }
  return builder_.Append(id, fields, values);
}

void StreamWriter::Append(uint64_t position, const CachedShape& shape, const EventFields& fields,
                          std::span<const AttributeValue> values) {
  if (!AdmitRow(position)) return;
  const size_t text_bytes = TextBytes(values);
  // The chunk so far is closed without this row: it ends within the record, after the rows before.
  if (text_bytes >= kLargeRowBytes && builder_.event_count() > 0) {
    Close(position, rows_in_record_ - 1, false);
  }
  absl::Status status = TryAppend(shape, fields, values);
  // The chunk is full: once more with an empty one. A row that still does not fit is lost.
  if (absl::IsResourceExhausted(status) && builder_.event_count() > 0) {
    Close(position, rows_in_record_ - 1, false);
    status = TryAppend(shape, fields, values);
  }
  if (!status.ok()) {
    AgentSourceMetrics::Add(metrics_.events_unfit);
    PutLoss(position, {.place = LossPlace::kDecode,
                       .reason = LossReason::kLimit,
                       .events = 1,
                       .first_timestamp_ns = fields.timestamp_ns,
                       .last_timestamp_ns = fields.timestamp_ns,
                       .detail = std::string(status.message())});
    return;
  }
  RecordOpen(position);
  text_bytes_since_check_ += text_bytes;
  if (LargeEnough()) Close(position, rows_in_record_, false);
}

// The number of rows is checked always, the size only now and then.
bool StreamWriter::LargeEnough() {
  const uint32_t events = builder_.event_count();
  if (events >= options_.chunk_events) return true;
  if (text_bytes_since_check_ < kCheckEveryTextBytes && events % kCheckEveryEvents != 0)
    return false;
  text_bytes_since_check_ = 0;
  return builder_.approximate_bytes() >= options_.chunk_columns_bytes;
}

void StreamWriter::LoseEvent(uint64_t position, uint64_t timestamp_ns, std::string_view why) {
  if (!AdmitRow(position)) return;
  AgentSourceMetrics::Add(metrics_.events_unfit);
  PutLoss(position, {.place = LossPlace::kDecode,
                     .reason = LossReason::kLimit,
                     .events = 1,
                     .first_timestamp_ns = timestamp_ns,
                     .last_timestamp_ns = timestamp_ns,
                     .detail = std::string(why)});
}

void StreamWriter::AddLoss(uint64_t position, Loss loss) {
  // A chunk that was closed within a record states that by its skip; only one that was closed
  // behind it holds the record's losses.
  if (position < resume_position_ || ended_) return;
  PutLoss(position, std::move(loss));
}

void StreamWriter::AddSuspension(uint64_t position, const Suspension& suspension) {
  if (position < resume_position_ || ended_) return;
  const SuspensionAdded added =
      neurontrace::AddSuspension(suspension, limits::kSuspensionsPerChunkMax, suspensions_);
  if (added == SuspensionAdded::kInvalid) {
    AgentSourceMetrics::Add(metrics_.suspension_reports_dropped);
  } else {
    RecordOpen(position);
  }
}

// Counted also for records that are stored, since the count is that of the whole source.
void StreamWriter::AddRemark(uint64_t position, RemarkKind kind, std::string_view detail) {
  if (ended_) return;
  neurontrace::AddRemark(kind, 1, detail, remarks_);
  MarkRemarkChanged(kind);
  if (position >= resume_position_) RecordOpen(position);
}

void StreamWriter::SetRemark(RemarkKind kind, uint64_t count, std::vector<std::string> details) {
  if (details.size() > limits::kRemarkDetailsMax) details.resize(limits::kRemarkDetailsMax);
  Remark remark{.kind = kind, .count = count, .details = std::move(details)};
  const auto known = std::find_if(remarks_.begin(), remarks_.end(),
                                  [kind](const Remark& one) { return one.kind == kind; });
  // A remark that was never made need not be withdrawn.
  if (known == remarks_.end()) {
    if (count == 0) return;
    remarks_.push_back(std::move(remark));
  } else {
    if (*known == remark) return;
    *known = std::move(remark);
  }
  MarkRemarkChanged(kind);
}

void StreamWriter::MarkRemarkChanged(RemarkKind kind) {
  const auto end = changed_remarks_.end();
  if (std::find(changed_remarks_.begin(), end, kind) == end) changed_remarks_.push_back(kind);
}

// The last chunk repeats all remarks, as earlier chunks may have been lost.
std::vector<Remark> StreamWriter::TakeRemarks(bool end_of_stream) {
  const std::vector<RemarkKind> changed = std::exchange(changed_remarks_, {});
  std::vector<Remark> taken;
  for (const Remark& remark : remarks_) {
    const bool is_new = std::find(changed.begin(), changed.end(), remark.kind) != changed.end();
    if (is_new || end_of_stream) taken.push_back(remark);
  }
  return taken;
}

void StreamWriter::SetSequenceMark(uint64_t position, uint64_t mark) {
  if (position < resume_position_ || ended_ || mark == sequence_mark_) return;
  sequence_mark_ = mark;
  RecordOpen(position);
}

void StreamWriter::PutLoss(uint64_t position, Loss loss) {
  if (loss.events_unknown) {
    counts_.lost_unknown = true;
    metrics_.losses_unknown.Add(loss.place, loss.reason, 1);
  }
  counts_.lost += loss.events;
  AgentSourceMetrics::Add(metrics_.losses, loss.events);
  metrics_.losses_by_place.Add(loss);
  if (loss.detail.size() > limits::kDetailBytesMax) loss.detail.resize(limits::kDetailBytesMax);
  RecordOpen(position);
  for (Loss& known : losses_) {
    if (SameKind(known, loss)) return Merge(loss, known);
  }
  // Beyond the limit a loss is added to the last one, so that the number of lost events stays
  // right.
  if (losses_.size() < limits::kLossesPerChunkMax) {
    losses_.push_back(std::move(loss));
  } else {
    Merge(loss, losses_.back());
  }
}

void StreamWriter::Tick(uint64_t position) {
  if (ended_) return;
  if (first_position_ && clock_.MonotonicNs() - opened_ns_ >= options_.chunk_age_ns) {
    Close(position, 0, false);
  }
  SendCanaryIfDue();
}

// A canary is a chunk without events that carries the time when it was sent. It takes the same way
// as every chunk, and without room in the queue it waits as they do.
void StreamWriter::SendCanaryIfDue() {
  const uint64_t now_ns = clock_.MonotonicNs();
  if (now_ns < canary_due_ns_ || canary_in_flight_ || !sink_.HasRoom(capture_id_)) return;
  canary_due_ns_ = now_ns + limits::kCanaryIntervalNs;
  canary_in_flight_ = true;
  ChunkHeader header = NewHeader();
  // A canary moves no cursor: it repeats the last chunk's position.
  header.source_position = closed_position_;
  header.source_skip = closed_skip_;
  header.canary_realtime_ns = clock_.RealtimeNs();
  header.sequence = next_sequence_++;
  AgentSourceMetrics::Add(metrics_.canaries);
  sink_.Submit({std::move(header), ""},
               weak_tasks_.Wrap([this, now_ns](const ChunkSink::Receipt& receipt) {
                 OnCanaryReceipt(now_ns, receipt);
               }));
}

void StreamWriter::OnCanaryReceipt(uint64_t sent_ns, const ChunkSink::Receipt& receipt) {
  if (receipt.fate == ChunkSink::Fate::kKept) return;
  canary_in_flight_ = false;
  if (receipt.fate != ChunkSink::Fate::kStored) return;
  metrics_.canary_watch.Acknowledged(canary_entry_, sent_ns, clock_.MonotonicNs());
}

ChunkHeader StreamWriter::NewHeader() const {
  ChunkHeader header;
  header.capture_id = capture_id_;
  header.stream = stream_;
  header.clock_domain = options_.clock_domain;
  header.producer_version = "neurontrace-agent " NEURONTRACE_VERSION;
  // The account: a receiver that misses chunks learns from it how many events they had.
  header.events_before = events_before_;
  header.losses_before = losses_before_;
  header.sequence_mark = closed_mark_;
  return header;
}

void StreamWriter::Flush(uint64_t position) {
  if (first_position_ && !ended_) Close(position, 0, false);
}

void StreamWriter::End(uint64_t position) {
  if (ended_) return;
  Close(position, 0, true);
  ended_ = true;
  // Frees memory: a capture may have thousands of streams that have ended.
  builder_ = EventChunkBuilder();
  shape_ids_ = {};
  metrics_.canary_watch.End(canary_entry_);
}

void StreamWriter::Close(uint64_t position, uint32_t skip, bool end_of_stream) {
  EncodedColumns encoded;
  std::string columns;
  if (builder_.event_count() > 0) {
    encoded = builder_.Finish();
    columns = CompressColumns(encoded.bytes);
    std::fill(shape_ids_.begin(), shape_ids_.end(), EventChunkBuilder::kNoShape);
  }
  // Cannot happen for text that compresses; random bytes may exceed the limit, and every receiver
  // would refuse such a chunk.
  if (columns.size() > limits::kChunkBytesMax) {
    PutLoss(position, {.place = LossPlace::kDecode,
                       .reason = LossReason::kLimit,
                       .events = encoded.event_count,
                       .first_timestamp_ns = encoded.first_timestamp_ns,
                       .last_timestamp_ns = encoded.last_timestamp_ns,
                       .detail = "the chunk exceeds the size limit"});
    encoded = {};
    columns.clear();
  }
  ChunkHeader header = NewHeader();
  header.event_count = encoded.event_count;
  header.first_timestamp_ns = encoded.first_timestamp_ns;
  header.last_timestamp_ns = encoded.last_timestamp_ns;
  header.rank_evidence = rank_evidence_;
  header.losses = std::exchange(losses_, {});
  header.suspensions = std::exchange(suspensions_, {});
  header.remarks = TakeRemarks(end_of_stream);
  // The source's place after this chunk, which the next canary repeats.
  header.source_position = closed_position_ = position;
  header.source_skip = closed_skip_ = skip;
  header.sequence_mark = closed_mark_ = sequence_mark_;
  header.end_of_stream = end_of_stream;
  header.columns_bytes = static_cast<uint32_t>(encoded.bytes.size());
  // The account for the next header. A receiver that misses this chunk learns its size from there.
  events_before_ += encoded.event_count;
  for (const Loss& loss : header.losses) {
    neurontrace::AddLoss(WithoutTimes(loss), losses_before_);
  }
  // Until it is durable, the source keeps everything from its first record on.
  in_flight_.push_back({next_sequence_, first_position_.value_or(position), false});
  first_position_.reset();
  text_bytes_since_check_ = 0;
  Submit(std::move(header), std::move(columns));
}

void StreamWriter::Submit(ChunkHeader header, std::string columns) {
  const uint64_t sequence = next_sequence_++;
  header.sequence = sequence;
  AgentSourceMetrics::Add(metrics_.chunks);
  AgentSourceMetrics::Add(metrics_.chunk_bytes, columns.size());
  counts_.bytes += ApproximateBytes(header) + columns.size();
  const uint32_t events = header.event_count;
  ++unsettled_chunks_;
  sink_.Submit({std::move(header), std::move(columns)},
               weak_tasks_.Wrap([this, sequence, events](const ChunkSink::Receipt& receipt) {
                 OnReceipt(sequence, events, receipt);
               }));
}

void StreamWriter::OnReceipt(uint64_t sequence, uint32_t events,
                             const ChunkSink::Receipt& receipt) {
  ReleaseForDeletion(sequence);
  switch (receipt.fate) {
    case ChunkSink::Fate::kKept:
      return;
    case ChunkSink::Fate::kStored:
      counts_.stored += events;
      break;
    case ChunkSink::Fate::kLost:
      // Nothing has to be reported: the account in the next chunk's header shows what is missing.
      AgentSourceMetrics::Add(metrics_.chunks_refused);
      counts_.lost += events;
      if (receipt.given_up && ended_ && sequence + 1 == next_sequence_) counts_.given_up = true;
      break;
  }
  --unsettled_chunks_;
}

void StreamWriter::ReleaseForDeletion(uint64_t sequence) {
  const auto chunk = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [&](const InFlight& c) { return c.sequence == sequence; });
  if (chunk != in_flight_.end()) chunk->done = true;
  // Receipts may overtake each other; only a completed prefix is released.
  while (!in_flight_.empty() && in_flight_.front().done) in_flight_.pop_front();
}

std::optional<uint64_t> StreamWriter::first_undurable_position() const {
  std::optional<uint64_t> first = first_position_;
  for (const InFlight& chunk : in_flight_) {
    if (!chunk.done && (!first || chunk.first_position < *first)) first = chunk.first_position;
  }
  return first;
}

}  // namespace neurontrace
