// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "agent/source/chunk_sink.h"
#include "base/task_runner.h"

namespace neurontrace {

// Where the chunks of a preview go: nowhere. Their streams count what they submit; here it is only
// said to be stored, so that what it came from is let go of. On the agent's sequence.
class CountingSink final : public ChunkSink {
 public:
  // `runner` outlives the sink.
  explicit CountingSink(TaskRunner& runner) : runner_(runner) {}

  using ChunkSink::HasRoom;
  bool HasRoom(const CaptureId&) const override { return true; }
  void Submit(Chunk, Done done) override {
    runner_.PostTask([done = std::move(done)] { done({Fate::kStored, "", false}); });
  }

 private:
  TaskRunner& runner_;
};

}  // namespace neurontrace
