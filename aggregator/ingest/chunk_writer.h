// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "base/clock.h"

namespace neurontrace {

// The one thread that writes chunks. What gathers while one group is being synced becomes the next
// group, so that one sync is paid for many chunks and a lone chunk waits for nothing but its own.
class ChunkWriter {
 public:
  // The result of ChunkStore::PutBatch for this chunk; the error of its whole group otherwise.
  using Done = std::function<void(const absl::StatusOr<PutResult>&)>;

  // Told on the writer's thread when writing begins to fail, and when it works again.
  using OnHealth = std::function<void(const absl::Status&)>;

  // All but `on_health` outlive it.
  ChunkWriter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics, const Clock& clock,
              OnHealth on_health);
  // Writes what was submitted, then ends.
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;
  ChunkWriter& operator=(const ChunkWriter&) = delete;

  // Any thread. Chunks are stored in the order of their submission; their bytes, which the caller
  // took from the budget, are released once they are durable. `done` is called on the writer's
  // thread and must be quick.
  void Submit(ReceivedChunk chunk, Done done);

 private:
  struct Group {
    std::vector<ReceivedChunk> chunks;
    std::vector<Done> dones;
  };

  void Run();
  void Commit(Group& group);
  void NoteHealth(const absl::Status& status);

  ChunkStore& store_;
  IngestBudget& budget_;
  IngestMetrics& metrics_;
  const Clock& clock_;
  const OnHealth on_health_;
  bool healthy_ = true;  // only on the writer's thread

  std::mutex mutex_;
  std::condition_variable submitted_;
  Group gathering_;       // guarded by mutex_; bounded by the budget
  bool closing_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace neurontrace
