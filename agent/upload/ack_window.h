// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "lib/trace/limits.h"

namespace neurontrace {

// Numbers the streams of one agent, from 1, never twice.
using StreamNumber = uint64_t;

// Says which chunk is sent next: streams take turns, one chunk each, so that a loud core cannot
// starve the others; within a stream chunks go in order; and no more than `unacked_max` chunks are
// under way in all, nor so many that they have `bytes_max` bytes or more. It counts chunks and
// holds none: each stream is a queue whose first `in_flight` chunks were sent. A plain value; one
// thread.
class AckWindow {
 public:
  explicit AckWindow(uint32_t unacked_max, uint64_t bytes_max = limits::kUnackedBytesMax)
      : unacked_max_(unacked_max), bytes_max_(bytes_max) {}

  // A chunk joined the end of the stream's queue.
  void Add(StreamNumber stream);

  struct Turn {
    StreamNumber stream = 0;
    size_t index = 0;  // of the chunk in its queue
  };
  // The chunk to send now, counted as sent; nothing while the window is full or nothing waits.
  std::optional<Turn> TakeTurn();
  // How large the chunk is that TakeTurn gave last of this stream.
  void NoteBytes(StreamNumber stream, uint32_t bytes);

  // The chunk at the front of the queue is answered for good.
  void PopFront(StreamNumber stream);
  // A chunk that was not sent is no longer there.
  void DropUnsent(StreamNumber stream);
  // What was sent from `index` on has to be sent again.
  void Rewind(StreamNumber stream, size_t index);
  void RewindAll();
  // A paused stream gets no turn.
  void Pause(StreamNumber stream);
  void Resume(StreamNumber stream);
  void Remove(StreamNumber stream);

  size_t in_flight() const { return in_flight_; }
  size_t in_flight(StreamNumber stream) const;
  uint64_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  struct Stream {
    size_t queued = 0;
    size_t in_flight = 0;
    std::deque<uint32_t> bytes;  // of those in flight, as far as they were noted
    bool paused = false;
    bool in_round = false;
  };
  void JoinRound(StreamNumber number, Stream& stream);
  void ForgetBytes(Stream& stream, size_t from);

  uint32_t unacked_max_;
  uint64_t bytes_max_;
  size_t in_flight_ = 0;
  uint64_t bytes_in_flight_ = 0;
  std::map<StreamNumber, Stream> streams_;
  std::deque<StreamNumber> round_;  // streams that may have something to send, next one first
};

}  // namespace neurontrace
