// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/store/store_check.h"
#include "lib/base/mutex.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {

// Turns an envelope from an agent into a chunk that is safe to store: the one validator of wire/,
// whose chunk it is, and where its foreign stops are. Any thread; the working memory, which is
// large, is shared by as many threads as come at once.
class ChunkAdmission {
 public:
  ChunkAdmission();
  ~ChunkAdmission();
  ChunkAdmission(const ChunkAdmission&) = delete;
  ChunkAdmission& operator=(const ChunkAdmission&) = delete;

  // Takes the bytes out of the envelope. INVALID_ARGUMENT, with the envelope untouched, for what
  // may never be stored, also for a chunk of another agent's stream.
  absl::StatusOr<ReceivedChunk> Admit(v1::ChunkEnvelope& envelope, const std::string& agent_id);
  // The same for any agent's chunk, as when one that is stored is looked at again.
  absl::StatusOr<ReceivedChunk> Examine(v1::ChunkEnvelope& envelope);

 private:
  struct Workspace;
  class Lease;

  // `agent_id` may be null: anybody's.
  absl::StatusOr<ReceivedChunk> Take(v1::ChunkEnvelope& envelope, const std::string* agent_id);

  Mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_ NT_GUARDED_BY(mutex_);
};

// Looks at stored chunks as `door`, which outlives it, looks at those that come. One thread at a
// time.
ExamineChunk ExamineThrough(ChunkAdmission& door);

}  // namespace neurontrace
