// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stream_check.h"

#include <algorithm>
#include <utility>

#include "aggregator/store/chunk_frame.h"
#include "aggregator/store/chunk_index_entry.h"
#include "aggregator/store/chunk_walk.h"
#include "aggregator/store/keys.h"
#include "lib/base/crc32c.h"
#include "lib/base/status.h"
#include "lib/trace/loss.h"

namespace neurontrace {
namespace {

uint32_t Crc32cOf(std::string_view bytes) { return Crc32c(bytes.data(), bytes.size()); }

}  // namespace

// The index and the sums are compared with what Chunks has read, so they come after it.
void StreamCheck::Run(const std::function<void()>& step) {
  sums_.number = record_.number;
  // Expired chunks are missing and must not count as a hole.
  sums_.next_sequence = record_.first_sequence;
  sums_.identity = record_.identity;
  Chunks(step);
  Holes();
  Index();
  if (all_read_) Sums();
}

// Sequences come in ascending order, so every hole shows when the next chunk is met.
void StreamCheck::Chunks(const std::function<void()>& step) {
  uint64_t next = record_.first_sequence;
  const auto at = [&](uint64_t sequence) {
    step();
    if (sequence < record_.first_sequence) {
      on_fault_(sequence, fmt::format("it still exists although all chunks before {} have expired",
                                      record_.first_sequence));
      return;
    }
    if (sequence > next) holes_.push_back({next, sequence});
    next = sequence + 1;
  };
  const absl::Status walked = WalkChunks(database_, capture_, record_.number, record_.next_sequence,
                                         {.chunk =
                                              [&](uint64_t sequence, std::string_view value) {
                                                at(sequence);
                                                Chunk(sequence, value);
                                              },
                                          .damaged =
                                              [&](uint64_t sequence, const absl::Status& why) {
                                                at(sequence);
                                                all_read_ = false;
                                                on_fault_(sequence, std::string(why.message()));
                                              }});
  if (next < record_.next_sequence) holes_.push_back({next, record_.next_sequence});
  if (walked.ok()) return;
  all_read_ = false;
  on_fault_(std::nullopt, std::string(walked.message()));
}

// A chunk that fails is left out of the sums, which are then not compared.
void StreamCheck::Chunk(uint64_t sequence, std::string_view value) {
  const auto chunk = Examined(sequence, value);
  if (!chunk.ok()) {
    all_read_ = false;
    on_fault_(sequence, std::string(chunk.status().message()));
    return;
  }
  sums_.Add(chunk->header, chunk->bytes(), chunk->gone_before);
  if (chunk->header.event_count == 0) return;
  expected_.push_back({.last_timestamp_ns = chunk->header.last_timestamp_ns,
                       .sequence = sequence,
                       .value_crc32c = Crc32cOf(EncodeChunkIndexValue(chunk->header, chunk->bytes(),
                                                                      chunk->foreign_stops))});
}

// The frame repeats fields of the header for fast readers, so both must agree.
absl::StatusOr<ReceivedChunk> StreamCheck::Examined(uint64_t sequence,
                                                    std::string_view value) const {
  const auto frame = ChunkFrame::Decode(value);
  if (!frame) return DataLoss("its {} bytes are not a chunk", value.size());
  const std::string_view rest = value.substr(ChunkFrame::kBytes);
  ASSIGN_OR_RETURN(ReceivedChunk chunk, examine_(rest.substr(0, frame->header_bytes),
                                                 rest.substr(frame->header_bytes), frame->crc32c));
  const ChunkHeader& header = chunk.header;
  if (header.capture_id != capture_ || header.stream != record_.identity ||
      header.sequence != sequence) {
    return DataLoss("its header is that of chunk {} of {} in capture {}", header.sequence,
                    ToString(header.stream), header.capture_id.ToString());
  }
  if (frame->event_count != header.event_count || frame->columns_bytes != header.columns_bytes ||
      frame->first_timestamp_ns != header.first_timestamp_ns ||
      frame->last_timestamp_ns != header.last_timestamp_ns) {
    return DataLoss("its frame and its header disagree");
  }
  chunk.gone_before = frame->gone_before;
  return chunk;
}

// A hole is a fault only if the record counts more chunks than there are. Chunks that were
// announced as gone before they arrived have none, and the record does not count them.
void StreamCheck::Holes() {
  if (all_read_ && record_.chunks <= sums_.chunks) return;
  for (const auto& [from, to] : holes_) {
    on_fault_(from, fmt::format("it is missing; the next one is {}", to));
  }
  if (!holes_.empty()) all_read_ = false;
}

// Walks expected and stored entries together; both are ordered by last timestamp and sequence.
void StreamCheck::Index() {
  std::sort(expected_.begin(), expected_.end());
  auto want = expected_.begin();
  const auto missing = [&] {
    on_fault_(want->sequence, "its index entry is missing");
    ++want;
  };
  const absl::Status status = database_.ForEach(
      Family::kChunkIndex, keys::Stream(capture_, record_.number),
      [&](std::string_view key_bytes, std::string_view value) {
        const auto key = keys::ParseChunkIndex(key_bytes);
        if (!key) return DataLoss("malformed key of {} bytes in chunk_index", key_bytes.size());
        const auto at = std::pair(key->last_timestamp_ns, key->sequence);
        while (want != expected_.end() && std::pair(want->last_timestamp_ns, want->sequence) < at) {
          missing();
        }
        if (want == expected_.end() || std::pair(want->last_timestamp_ns, want->sequence) != at) {
          // Otherwise it belongs to an unreadable chunk, which was reported already.
          if (all_read_)
            on_fault_(key->sequence, "it has an index entry, but there is no such chunk");
        } else {
          if (want->value_crc32c != Crc32cOf(value)) {
            on_fault_(key->sequence, "its index entry does not match its columns");
          }
          ++want;
        }
        return absl::OkStatus();
      });
  if (!status.ok()) {
    on_fault_(std::nullopt, std::string(status.message()));
    return;
  }
  while (want != expected_.end()) missing();
}

void StreamCheck::Compare(std::string_view what, uint64_t stored, uint64_t from_chunks) {
  if (stored == from_chunks) return;
  on_fault_(std::nullopt,
            fmt::format("{}: {} by its record, {} by its chunks", what, stored, from_chunks));
}

// A repair changes some sums on purpose; those are compared only while the record has never been
// repaired or trimmed.
void StreamCheck::Sums() {
  Compare("chunks", record_.chunks, sums_.chunks);
  Compare("events", record_.events, sums_.events);
  if (!record_.Conserved()) {
    on_fault_(std::nullopt,
              fmt::format("its account does not add up: {} captured, {} stored, {} lost",
                          record_.captured, record_.events, record_.events_lost()));
  }
  if (record_.first_sequence > 0) Compare("bytes", record_.bytes, sums_.bytes);
  // After expiry or a repair the record knows more than the remaining chunks do.
  const bool was_damaged =
      std::any_of(record_.losses.begin(), record_.losses.end(), [](const Loss& loss) {
        return loss.place == LossPlace::kStore && loss.reason == LossReason::kMalformed;
      });
  if (was_damaged || record_.first_sequence > 0) return;
  Compare("next sequence", record_.next_sequence, sums_.next_sequence);
  Compare("source position", record_.source_position, sums_.source_position);
  Compare("source skip", record_.source_skip, sums_.source_skip);
  Compare("ended", record_.ended, sums_.ended);
  Compare("bytes", record_.bytes, sums_.bytes);
  Compare("first timestamp", record_.first_timestamp_ns, sums_.first_timestamp_ns);
  Compare("last timestamp", record_.last_timestamp_ns, sums_.last_timestamp_ns);
  Compare("longest chunk in ns", record_.chunk_span_max_ns, sums_.chunk_span_max_ns);
  Compare("captured events", record_.captured, sums_.captured);
  Compare("last canary", record_.canary_realtime_ns, sums_.canary_realtime_ns);
  if (record_.losses != sums_.losses) {
    on_fault_(
        std::nullopt,
        fmt::format("events lost: {} by its record, {} by its chunks, or places and reasons differ",
                    record_.events_lost(), sums_.events_lost()));
  }
  if (record_.suspensions != sums_.suspensions ||
      record_.suspensions_count != sums_.suspensions_count) {
    on_fault_(std::nullopt, fmt::format("its record says {} suspensions, its chunks give {}, or "
                                        "other times",
                                        record_.suspensions_count, sums_.suspensions_count));
  }
  if (record_.evidence != sums_.evidence) {
    on_fault_(std::nullopt, "its record and its chunks have different rank evidence");
  }
}

}  // namespace neurontrace
