// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lib/trace/chunk_header.h"

namespace neurontrace {

// Takes the chunks of the sources: the delivery queue in production, a list in tests. All calls and
// callbacks happen on the agent's sequence.
class ChunkSink {
 public:
  enum class Fate : uint8_t {
    kKept,    // durable on this node: its source may let go of it. Another receipt follows.
    kStored,  // durable at the aggregator
    kLost,    // it never will be; the account of a later chunk shows it
  };
  // The fate of a chunk: kKept at most once and first, then kStored or kLost exactly once. If
  // nothing is kept on this node, kStored is the first that a source receives.
  struct Receipt {
    Fate fate = Fate::kLost;
    // For logs; empty if the chunk is durable.
    std::string reason;  // why it is lost
    // The chunk is lost and its stream was given up with it, so no later chunk of the stream
    // reports it.
    bool given_up = false;
  };
  // Called on the sequence, for each receipt. May be called after the source was destroyed, so
  // sources wrap it in WeakTasks.
  using Done = std::function<void(const Receipt&)>;

  virtual ~ChunkSink() = default;

  // Returns false while the budget for chunks of the capture, or of all captures, is spent. Sources
  // then stop reading what belongs to the capture, which stays where it is (in a tap's buffer, in a
  // file), and ask again on their next turn. This is the agent's back-pressure.
  virtual bool HasRoom(const CaptureId& capture_id) const = 0;
  // Returns whether there is room for any capture.
  bool HasRoom() const { return HasRoom(CaptureId()); }

  // Takes a chunk for delivery, in order within its stream. Never blocks and never fails: a chunk
  // that finds no room gets kLost. `done` is called later, not from within Submit.
  virtual void Submit(Chunk chunk, Done done) = 0;
};

}  // namespace neurontrace
