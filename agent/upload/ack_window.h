// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "lib/trace/limits.h"

namespace neurontrace {

// Numbers the streams of one agent from 1; never reused.
using StreamNumber = uint64_t;

// Decides which chunk is sent next. Streams take turns of one chunk each, so that a busy core
// cannot starve the others; within a stream chunks go in order. At most `unacked_max` chunks are
// under way in total, and no further one while those have `bytes_max` bytes or more. It counts
// chunks and holds none: each stream is a queue whose first `in_flight` chunks were sent. Functions
// that name an unknown stream have no effect unless they assert otherwise. A plain value; one
// thread. Used by Uploader alone, which holds the queue that these numbers describe.
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
  // Returns the chunk to send now, counted as sent; nothing while the window is full or nothing
  // waits. The byte limit may be exceeded by one chunk, whose size is not known yet.
  std::optional<Turn> TakeTurn();
  // Sets the size of the chunk that TakeTurn returned last for this stream. Called once for each
  // chunk that is sent, right after its turn; in bytes.
  void RecordBytes(StreamNumber stream, uint32_t bytes);

  // The chunk at the front of the queue is settled. Requires a stream with a queued chunk.
  void PopFront(StreamNumber stream);
  // A chunk that was not sent is no longer in the queue. Requires a stream with such a chunk.
  void DropUnsent(StreamNumber stream);
  // What was sent from `index` on has to be sent again. RewindAll: everything, and no stream is
  // paused.
  void Rewind(StreamNumber stream, size_t index);
  void RewindAll();
  // A paused stream gets no turn until Resume.
  void Pause(StreamNumber stream);
  void Resume(StreamNumber stream);
  // Forgets the stream; its chunks under way no longer count.
  void Remove(StreamNumber stream);

  // Chunks and bytes that were sent and are not settled.
  size_t in_flight() const { return in_flight_; }
  size_t in_flight(StreamNumber stream) const;
  uint64_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  struct Stream {
    size_t queued = 0;
    size_t in_flight = 0;
    std::deque<uint32_t> bytes;  // of those in flight, as far as they were noted
    bool paused = false;
    // Prevents a stream from being in the round twice, which would give it two turns.
    bool in_round = false;
  };
  // Puts the stream at the end of the round if it has something to send.
  void JoinRound(StreamNumber number, Stream& stream);
  // Subtracts the noted sizes from position `from` on.
  void ForgetBytes(Stream& stream, size_t from);

  uint32_t unacked_max_;
  uint64_t bytes_max_;
  size_t in_flight_ = 0;
  uint64_t bytes_in_flight_ = 0;
  std::map<StreamNumber, Stream> streams_;
  std::deque<StreamNumber> round_;  // streams that may have something to send, next one first
};

}  // namespace neurontrace
