// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/canary_ages.h"
#include "aggregator/ingest/commit_observer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "lib/base/clock.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Writes groups of chunks, answers each chunk, and tells its observer whether the store accepts
// writes. One thread at a time.
class ChunkCommitter {
 public:
  // Receives the result of ChunkStore::PutBatch for this chunk, or the error of its whole group.
  using Done = std::function<void(const absl::StatusOr<PutResult>&)>;

  // Chunks that become durable with one sync. `dones` has one entry for each chunk, in the same
  // order.
  struct Group {
    std::vector<ReceivedChunk> chunks;
    std::vector<Done> dones;  // one for each chunk; must be quick
  };

  // All of them must outlive this.
  ChunkCommitter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                 const Clock& clock, CommitObserver& observer);
  ChunkCommitter(const ChunkCommitter&) = delete;
  ChunkCommitter& operator=(const ChunkCommitter&) = delete;

  // Performs one durable write, calls each `done`, and returns the chunks' bytes to the budget.
  // Does not fail itself: a failed write answers every chunk of the group with the error, so that
  // each agent sends its chunks again.
  void Commit(Group& group);

  // Returns the canaries of committed chunks. Any thread.
  CanaryAges& canary_ages() { return canary_ages_; }

 private:
  // Reports a failed write or the first that works again; logs once per change of the error's code.
  void RecordHealth(const absl::Status& status);
  // Counts and reports a chunk that differs from the stored one with the same sequence.
  void CountConflict(const ChunkHeader& header);

  ChunkStore& store_;
  IngestBudget& budget_;
  IngestMetrics& metrics_;
  const Clock& clock_;
  CommitObserver& observer_;
  CanaryAges canary_ages_;
  // The stream of the last conflict, so that a run of conflicts is logged once.
  std::optional<StreamIdentity> last_conflict_;
  // The code of the last write's result.
  absl::StatusCode health_ = absl::StatusCode::kOk;
};

}  // namespace neurontrace
