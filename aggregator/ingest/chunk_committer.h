// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/ingest/commit_observer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Knows when the last stored canary of each live stream was sent, which shows from this end whether
// data flows. A stream is live from its first chunk to its last. Before its first canary, its first
// chunk counts. A stream of an agent that is away for long is not watched until its next chunk.
// Beyond limits::kCanaryStreamsMax further streams are not watched. The metric of the oldest canary
// is an end-to-end check: it grows if any part between an agent's source and the store stops
// passing data on. Any thread.
class CanaryAges {
 public:
  // Called for each durable chunk with the current times.
  void OnStored(const ChunkHeader& header, uint64_t realtime_ns, uint64_t monotonic_ns);
  // Forgets captures that do not continue, as nothing is due from their streams.
  void KeepOnly(const std::function<bool(const CaptureId&)>& is_running);
  // Forgets streams of lost agents whose last canary is older than `older_than_ns`. Their next
  // chunk makes them watched again.
  void ForgetLost(uint64_t older_than_ns, uint64_t monotonic_ns,
                  const std::function<bool(const std::string& agent_id)>& is_lost);

  // Returns the age in ns of the oldest last canary: its instance's clock determines when it was
  // sent, ours how long ago it arrived. Returns nullopt without live streams.
  std::optional<uint64_t> OldestNs(uint64_t monotonic_ns) const;
  // Returns how many live streams are watched.
  size_t streams() const;

 private:
  using Streams =
      absl::flat_hash_map<StreamIdentity, uint64_t>;  // when sent, on our monotonic clock

  mutable Mutex mutex_;
  std::map<CaptureId, Streams> captures_ NT_GUARDED_BY(mutex_);
  size_t streams_ NT_GUARDED_BY(mutex_) = 0;
};

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
  // Reports a change of the store's health, once per change of the error's code.
  void NoteHealth(const absl::Status& status);
  // Counts and reports a chunk that differs from the stored one with the same sequence.
  void NoteConflict(const ChunkHeader& header);

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
