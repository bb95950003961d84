// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "aggregator/ingest/chunk_committer.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Takes validated chunks and stores them. ChunkWriter does so in the aggregator; a simulation has
// another. Any thread.
class ChunkReceiver {
 public:
  using Done = ChunkCommitter::Done;

  virtual ~ChunkReceiver() = default;
  // Stores chunks in the order of submission. The caller has taken their bytes from the budget;
  // they are released once the chunks are durable. `done` is called once, perhaps on another thread
  // and before this returns, and must be quick. Does not wait.
  virtual void Submit(ReceivedChunk chunk, Done done) = 0;
};

// The only thread that writes chunks. Chunks that arrive while one group is synced form the next
// group, so that one sync serves many chunks and a lone chunk only waits for its own.
// thread: chunks: writes and syncs chunks in groups
class ChunkWriter final : public ChunkReceiver {
 public:
  // The committer must outlive this, and is used on its thread only.
  explicit ChunkWriter(ChunkCommitter& committer);
  // Writes what was submitted, then ends the thread.
  ~ChunkWriter() override;
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  // Implements ChunkReceiver; `done` is called on the writer's thread.
  void Submit(ReceivedChunk chunk, Done done) override;

 private:
  // Gathers, commits and repeats until it is closing and nothing is left; the thread's function.
  void Run();

  ChunkCommitter& committer_;

  Mutex mutex_;
  CondVar submitted_;
  // The next group. Exchanged for an empty one when the writer takes it.
  ChunkCommitter::Group gathering_ NT_GUARDED_BY(mutex_);  // bounded by the budget
  bool closing_ NT_GUARDED_BY(mutex_) = false;
  // Last, because it uses all other members.
  std::thread thread_;
};

}  // namespace neurontrace
