// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "aggregator/ingest/chunk_committer.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// The one thread that writes chunks. What gathers while one group is being synced becomes the next
// group, so that one sync is paid for many chunks and a lone chunk waits for nothing but its own.
// thread: chunks: writes and syncs chunks in groups
class ChunkWriter {
 public:
  using Done = ChunkCommitter::Done;

  // Uses the committer, which outlives it, on its own thread alone.
  explicit ChunkWriter(ChunkCommitter& committer);
  // Writes what was submitted, then ends.
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  // Any thread. Chunks are stored in the order of their submission; their bytes, which the caller
  // took from the budget, are released once they are durable. `done` is called on the writer's
  // thread and must be quick.
  void Submit(ReceivedChunk chunk, Done done);

 private:
  void Run();

  ChunkCommitter& committer_;

  Mutex mutex_;
  CondVar submitted_;
  ChunkCommitter::Group gathering_ NT_GUARDED_BY(mutex_);  // bounded by the budget
  bool closing_ NT_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace neurontrace
