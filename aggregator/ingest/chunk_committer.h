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
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/store/chunk_store.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/chunk_header.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// When the last canary of each live stream was sent that is stored here: what says that data flows,
// seen from this end. A stream is live from its first chunk to its last; before its first canary it
// counts as if one had been sent with that chunk. A stream of an agent that is away for long is not
// watched until its next chunk, beyond limits::kCanaryStreamsMax none is. Any thread.
class CanaryAges {
 public:
  // A chunk is durable. Both times are now.
  void OnStored(const ChunkHeader& header, uint64_t realtime_ns, uint64_t monotonic_ns);
  // Lets go of captures that do not continue: of their streams nothing is due any more.
  void KeepOnly(const std::function<bool(const CaptureId&)>& goes_on);
  // Lets go of the streams of agents that are lost, of whom nothing is due either: of those streams
  // whose last canary is older than `older_than_ns`. Their next chunk has them watched again.
  void ForgetLost(uint64_t older_than_ns, uint64_t monotonic_ns,
                  const std::function<bool(const std::string& agent_id)>& is_lost);

  // The age of the last canary of the stream that is worst off, by the clock of its instance when
  // it was sent and by ours since it came; nothing without live streams.
  std::optional<uint64_t> OldestNs(uint64_t monotonic_ns) const;
  size_t streams() const;

 private:
  using Streams = absl::flat_hash_map<StreamIdentity, uint64_t>;  // sent, on our monotonic clock

  mutable Mutex mutex_;
  std::map<CaptureId, Streams> captures_ NT_GUARDED_BY(mutex_);
  size_t streams_ NT_GUARDED_BY(mutex_) = 0;
};

// Writes groups of chunks, answers each, and says whether the store takes them. One thread at a
// time.
class ChunkCommitter {
 public:
  // The result of ChunkStore::PutBatch for this chunk; the error of its whole group otherwise.
  using Done = std::function<void(const absl::StatusOr<PutResult>&)>;
  // Told when writing begins to fail, begins to fail in another way, and works again.
  using OnHealth = std::function<void(const absl::Status&)>;

  // Called for a chunk that came again with other contents than what is stored; once in a row for
  // each stream. `what` says so to people.
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
