// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "trace/chunk_header.h"

namespace neurontrace {

// Where sources hand their chunks over: the uploader's queue in production, a list in tests.
// Everything happens on the agent's sequence.
class ChunkSink {
 public:
  // What became of a chunk, said exactly once.
  struct Receipt {
    bool stored = false;  // durable at the aggregator; otherwise it never will be
    std::string reason;   // why not
  };
  using Done = std::function<void(const Receipt&)>;

  virtual ~ChunkSink() = default;

  // False while the queue's budget is spent: sources then stop reading (what they hold stays where
  // it is) and look again on their next turn.
  virtual bool HasRoom() const = 0;

  // Takes a chunk for delivery, in order within its stream, and never blocks. `done` is called
  // later, not from within Submit.
  virtual void Submit(Chunk chunk, Done done) = 0;
};

}  // namespace neurontrace
