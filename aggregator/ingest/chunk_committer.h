// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "base/clock.h"

namespace neurontrace {

// Writes groups of chunks, answers each, and says whether the store takes them. One thread at a
// time.
class ChunkCommitter {
 public:
  // The result of ChunkStore::PutBatch for this chunk; the error of its whole group otherwise.
  using Done = std::function<void(const absl::StatusOr<PutResult>&)>;
  // Told when writing begins to fail, and when it works again.
  using OnHealth = std::function<void(const absl::Status&)>;

  struct Group {
    std::vector<ReceivedChunk> chunks;
    std::vector<Done> dones;  // one a chunk; must be quick
  };

  // All but `on_health` outlive it.
  ChunkCommitter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                 const Clock& clock, OnHealth on_health);
  ChunkCommitter(const ChunkCommitter&) = delete;
  ChunkCommitter& operator=(const ChunkCommitter&) = delete;

  // One durable write; then the chunks' bytes are given back to the budget.
  void Commit(Group& group);

 private:
  void NoteHealth(const absl::Status& status);

  ChunkStore& store_;
  IngestBudget& budget_;
  IngestMetrics& metrics_;
  const Clock& clock_;
  const OnHealth on_health_;
  bool healthy_ = true;
};

}  // namespace neurontrace
