// SPDX-License-Identifier: Apache-2.0
// Where streams go on: by what the aggregator says, by what lies here, or, before the aggregator is
// asked, by that alone (docs/decisions/0012-captures-go-on-without-the-aggregator.md).
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "agent/upload/delivery_queue.h"
#include "base/status.h"
#include "trace/stream_cursor.h"
#include "wire/chunk_envelope.h"

namespace neurontrace {

void DeliveryQueue::Learn(const CaptureId& capture_id, const StreamCursor& cursor) {
  auto& streams = behind_[capture_id];
  if (streams.size() >= limits::kSpoolRunningStreamsMax && !streams.contains(cursor.stream)) {
    if (spool_ != nullptr) spool_->NoteUnsure(capture_id);
    return;
  }
  const auto [known, is_new] = streams.try_emplace(cursor.stream, cursor);
  if (!is_new && known->second.next_sequence < cursor.next_sequence) known->second = cursor;
}

void DeliveryQueue::LearnFrom(Stream& stream) {
  if (stream.safe_header.empty()) return;
  const auto header = ParseChunkHeader(std::exchange(stream.safe_header, {}));
  if (header.ok()) Learn(header->capture_id, CursorBehind(*header));
}

void DeliveryQueue::MergeCursors(const CaptureId& capture_id, std::vector<StreamCursor>& cursors) {
  for (const StreamCursor& cursor : cursors) {
    if (cursor.next_sequence > 0) Learn(capture_id, cursor);
  }
  if (spool_ != nullptr) spool_->NoteCursor(capture_id);
  for (const StreamNumber number : StreamsIn(capture_id)) {
    const auto header = ParseChunkHeader(streams_.at(number).last_header);
    if (!header.ok()) continue;
    StreamCursor ours = CursorBehind(*header);
    const auto theirs = std::find_if(cursors.begin(), cursors.end(), [&](const StreamCursor& c) {
      return c.stream == ours.stream;
    });
    if (theirs == cursors.end()) {
      cursors.push_back(std::move(ours));
    } else if (theirs->next_sequence < ours.next_sequence) {
      *theirs = std::move(ours);
    }
  }
  resumed_.erase(capture_id);
  if (doubtful_.erase(capture_id) == 0) return;
  for (StreamCursor& cursor : cursors) {
    if (!cursor.ended) TellUnknown(capture_id, cursor);
  }
}

std::vector<DeliveryQueue::Resumed> DeliveryQueue::TakeRunning() {
  std::vector<Resumed> captures;
  if (spool_ == nullptr) return captures;
  for (const auto& [capture_id, spec] : spool_->running()) {
    for (const StreamNumber number : StreamsIn(capture_id)) LearnFrom(streams_.at(number));
    Resumed& resumed = captures.emplace_back(Resumed{capture_id, spec, {}});
    auto& at = resumed_[capture_id];
    for (const auto& [identity, cursor] : behind_[capture_id]) {
      at[identity] = cursor.next_sequence;
      resumed.cursors.push_back(cursor);
    }
  }
  return captures;
}

void DeliveryQueue::NoteRunning(const CaptureId& capture_id, const CaptureSpec& spec) {
  if (spool_ != nullptr) spool_->NoteRunning(capture_id, spec);
}

bool DeliveryQueue::WasWrong(const CaptureId& capture_id,
                             const std::vector<StreamCursor>& cursors) {
  const auto resumed = resumed_.find(capture_id);
  if (resumed == resumed_.end()) return false;
  const bool wrong = std::any_of(cursors.begin(), cursors.end(), [&](const StreamCursor& cursor) {
    const auto at = resumed->second.find(cursor.stream);
    return cursor.next_sequence > (at == resumed->second.end() ? 0 : at->second);
  });
  if (!wrong) return false;
  spdlog::error(
      "spool: capture {} was resumed from an old state: what was recorded of it since this agent "
      "started is given up",
      capture_id.ToString());
  resumed_.erase(resumed);
  doubtful_.insert(capture_id);
  return true;
}

bool DeliveryQueue::CursorsAreExact() {
  for (const auto& [number, stream] : streams_) {
    for (size_t i = 0; i < stream.ready; ++i) {
      if (stream.entries[i].place.segment == 0) return false;
    }
  }
  return true;
}

void DeliveryQueue::TellUnknown(const CaptureId& capture_id, StreamCursor& cursor) {
  const Loss loss{
      .place = LossPlace::kSpool, .reason = LossReason::kUnknown, .events_unknown = true};
  Chunk chunk;
  chunk.header.capture_id = capture_id;
  chunk.header.stream = cursor.stream;
  chunk.header.sequence = cursor.next_sequence++;
  chunk.header.source_position = cursor.source_position;
  chunk.header.source_skip = cursor.source_skip;
  chunk.header.events_before = cursor.events_before;
  chunk.header.losses_before = cursor.losses_before;
  chunk.header.sequence_mark = cursor.sequence_mark;
  chunk.header.losses.push_back(loss);
  chunk.header.losses.back().detail = "the agent's disk did not give back what was kept on it";
  AddLoss(loss, cursor.losses_before);
  spdlog::error("spool: {} lost what nobody knows", ToString(cursor.stream));
  Submit(std::move(chunk), [](const Receipt&) {});
}

}  // namespace neurontrace
