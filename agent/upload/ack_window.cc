// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/ack_window.h"

#include <cassert>

namespace neurontrace {

void AckWindow::Add(StreamNumber number) {
  Stream& stream = streams_[number];
  ++stream.queued;
  JoinRound(number, stream);
}

std::optional<AckWindow::Turn> AckWindow::TakeTurn() {
  // The byte limit is checked before a chunk is taken, whose size is not known yet: it may be
  // exceeded by one chunk.
  if (in_flight_ >= unacked_max_ || bytes_in_flight_ >= bytes_max_) return std::nullopt;
  // Entries are removed lazily: a stream that was paused or emptied since it joined is skipped
  // here.
  while (!round_.empty()) {
    const StreamNumber number = round_.front();
    round_.pop_front();
    const auto it = streams_.find(number);
    if (it == streams_.end()) continue;
    Stream& stream = it->second;
    stream.in_round = false;
    assert(stream.in_flight <= stream.queued);
    if (stream.paused || stream.in_flight == stream.queued) continue;
    const Turn turn{number, stream.in_flight};
    ++stream.in_flight;
    ++in_flight_;
    // At the end of the round: this is what makes streams take turns.
    JoinRound(number, stream);
    return turn;
  }
  return std::nullopt;
}

void AckWindow::RecordBytes(StreamNumber number, uint32_t bytes) {
  const auto it = streams_.find(number);
  assert(it != streams_.end() && it->second.bytes.size() < it->second.in_flight);
  it->second.bytes.push_back(bytes);
  bytes_in_flight_ += bytes;
}

// From the back, since the sizes that stay belong to the oldest chunks.
void AckWindow::ForgetBytes(Stream& stream, size_t from) {
  while (stream.bytes.size() > from) {
    assert(bytes_in_flight_ >= stream.bytes.back());
    bytes_in_flight_ -= stream.bytes.back();
    stream.bytes.pop_back();
  }
}

void AckWindow::DropUnsent(StreamNumber number) {
  const auto it = streams_.find(number);
  assert(it != streams_.end() && it->second.queued > it->second.in_flight);
  --it->second.queued;
}

// The chunk need not have been sent: it may be stored since an earlier call, or be dropped.
void AckWindow::PopFront(StreamNumber number) {
  const auto it = streams_.find(number);
  assert(it != streams_.end() && it->second.queued > 0);
  Stream& stream = it->second;
  --stream.queued;
  if (stream.in_flight > 0) {
    assert(in_flight_ > 0);
    --stream.in_flight;
    --in_flight_;
    // Sizes are noted after the turn, so the newest may still be missing.
    if (!stream.bytes.empty()) {
      assert(bytes_in_flight_ >= stream.bytes.front());
      bytes_in_flight_ -= stream.bytes.front();
      stream.bytes.pop_front();
    }
  }
}

// Chunks before `index` stay in flight: their acknowledgements are still expected.
void AckWindow::Rewind(StreamNumber number, size_t index) {
  const auto it = streams_.find(number);
  if (it == streams_.end() || it->second.in_flight <= index) return;
  assert(in_flight_ >= it->second.in_flight - index);
  in_flight_ -= it->second.in_flight - index;
  it->second.in_flight = index;
  ForgetBytes(it->second, index);
  JoinRound(number, it->second);
}

// Streams that are in the round keep their places in it.
void AckWindow::RewindAll() {
  for (auto& [number, stream] : streams_) {
    stream.in_flight = 0;
    ForgetBytes(stream, 0);
    stream.paused = false;
    JoinRound(number, stream);
  }
  in_flight_ = 0;
}

void AckWindow::Pause(StreamNumber number) {
  const auto it = streams_.find(number);
  if (it != streams_.end()) it->second.paused = true;
}

void AckWindow::Resume(StreamNumber number) {
  const auto it = streams_.find(number);
  if (it == streams_.end()) return;
  it->second.paused = false;
  JoinRound(number, it->second);
}

// The stream may still be in round_; TakeTurn skips numbers that it does not find.
void AckWindow::Remove(StreamNumber number) {
  const auto it = streams_.find(number);
  if (it == streams_.end()) return;
  assert(in_flight_ >= it->second.in_flight);
  in_flight_ -= it->second.in_flight;
  ForgetBytes(it->second, 0);
  streams_.erase(it);
}

size_t AckWindow::in_flight(StreamNumber number) const {
  const auto it = streams_.find(number);
  return it == streams_.end() ? 0 : it->second.in_flight;
}

// Does nothing for a stream that is in the round, is paused, or has sent all that it has.
void AckWindow::JoinRound(StreamNumber number, Stream& stream) {
  if (stream.in_round || stream.paused || stream.in_flight == stream.queued) return;
  assert(stream.in_flight < stream.queued);
  stream.in_round = true;
  round_.push_back(number);
}

}  // namespace neurontrace
