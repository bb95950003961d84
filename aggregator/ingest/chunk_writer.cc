// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_writer.h"

#include <cassert>
#include <chrono>
#include <utility>

namespace neurontrace {
namespace {

// Groups start at least this far apart. Under a steady load one sync then serves several chunks,
// and a chunk that comes alone does not wait.
constexpr std::chrono::milliseconds kGroupInterval{2};

}  // namespace

ChunkWriter::ChunkWriter(ChunkCommitter& committer)
    : committer_(committer), thread_([this] { Run(); }) {}

// Chunks that were submitted are still written and answered: their calls wait for the answers.
ChunkWriter::~ChunkWriter() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  submitted_.NotifyOne();
  thread_.join();
}

void ChunkWriter::Submit(ReceivedChunk chunk, Done done) {
  {
    const MutexLock lock(mutex_);
    gathering_.chunks.push_back(std::move(chunk));
    gathering_.dones.push_back(std::move(done));
  }
  submitted_.NotifyOne();
}

// Group commit. While a sync runs, further chunks gather and form the next group, so the group size
// adapts to the load without a tuning parameter. The same method is used by databases for their
// write-ahead logs.
void ChunkWriter::Run() {
  std::chrono::steady_clock::time_point next_begin;
  while (true) {
    ChunkCommitter::Group group;
    {
      const MutexLock lock(mutex_);
      submitted_.Wait(
          mutex_, [this]() NT_REQUIRES(mutex_) { return closing_ || !gathering_.chunks.empty(); });
      if (gathering_.chunks.empty()) return;
      // The interval has usually passed already. Under steady load it lets a few more chunks join
      // before the group is closed.
      submitted_.WaitFor(mutex_, next_begin - std::chrono::steady_clock::now(),
                         [this]() NT_REQUIRES(mutex_) { return closing_; });
      next_begin = std::chrono::steady_clock::now() + kGroupInterval;
      std::swap(group, gathering_);
      assert(!group.chunks.empty() && gathering_.chunks.empty());
    }
    // Without the lock, so that chunks can gather while the disk syncs.
    committer_.Commit(group);
  }
}

}  // namespace neurontrace
