// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/trace/chunk_header.h"

namespace neurontrace {

// Where sources hand their chunks over: the delivery queue in production, a list in tests.
// Everything happens on the agent's sequence.
class ChunkSink {
 public:
  enum class Fate : uint8_t {
    kKept,    // durable on this node: its source may let go of it. Another receipt follows.
    kStored,  // durable at the aggregator
    kLost,    // it never will be; the account of a later chunk shows it
  };
  // What became of a chunk: kKept at most once, and first; then kStored or kLost, exactly once.
  // Where nothing is kept on this node, kStored is the first a source hears.
  struct Receipt {
    Fate fate = Fate::kLost;
    std::string reason;  // why it is lost
    // Lost, and its stream given up with it: only a later chunk of the stream can still tell of it.
    bool given_up = false;
  };
  using Done = std::function<void(const Receipt&)>;

  virtual ~ChunkSink() = default;

  // False while the budget for chunks of the capture, or of all, is spent: sources then stop
  // reading what is the capture's (what they hold stays where it is) and look again on their next
  // turn.
  virtual bool HasRoom(const CaptureId& capture_id) const = 0;
  // Whether there is room at all.
  bool HasRoom() const { return HasRoom(CaptureId()); }

  // Takes a chunk for delivery, in order within its stream, and never blocks. `done` is called
  // later, not from within Submit.
  virtual void Submit(Chunk chunk, Done done) = 0;
};

}  // namespace neurontrace
