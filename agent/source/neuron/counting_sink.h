// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "agent/source/chunk_sink.h"
#include "lib/base/task_runner.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// The sink of previews, which keep nothing: the streams count what they submit, and each chunk is
// reported as stored, so that its records are released. On the agent's sequence.
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
