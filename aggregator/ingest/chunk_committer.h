// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/canary_ages.h"
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
  // Told when writing begins to fail, begins to fail in another way, and works again.
  using OnHealth = std::function<void(const absl::Status&)>;

  // Told of a chunk that came again with other contents than what is stored; once in a row for each
  // stream. `what` says so to people.
  using OnConflict = std::function<void(const CaptureId& capture, const std::string& what)>;

  struct Group {
    std::vector<ReceivedChunk> chunks;
    std::vector<Done> dones;  // one a chunk; must be quick
  };

  // All but the functions outlive it. `on_conflict` may be empty.
  ChunkCommitter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                 const Clock& clock, OnHealth on_health, OnConflict on_conflict = nullptr);
  ChunkCommitter(const ChunkCommitter&) = delete;
  ChunkCommitter& operator=(const ChunkCommitter&) = delete;

  // One durable write; then the chunks' bytes are given back to the budget.
  void Commit(Group& group);

  // Of what was committed; any thread.
  CanaryAges& canary_ages() { return canary_ages_; }

 private:
  void NoteHealth(const absl::Status& status);
  void NoteConflict(const ChunkHeader& header);

  ChunkStore& store_;
  IngestBudget& budget_;
  IngestMetrics& metrics_;
  const Clock& clock_;
  const OnHealth on_health_;
  const OnConflict on_conflict_;
  CanaryAges canary_ages_;
  std::optional<StreamIdentity> last_conflict_;
  absl::StatusCode health_ = absl::StatusCode::kOk;
};

}  // namespace neurontrace
