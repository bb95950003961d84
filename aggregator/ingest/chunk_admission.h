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

// Turns an envelope from an agent into a chunk that is safe to store. Runs the validator of
// lib/wire/, checks whose chunk it is, and finds its foreign stops. Any thread; each call uses one
// of a set of large workspaces, which grows to the number of concurrent calls.
class ChunkAdmission {
 public:
  ChunkAdmission();
  ~ChunkAdmission();
  ChunkAdmission(const ChunkAdmission&) = delete;
  ChunkAdmission& operator=(const ChunkAdmission&) = delete;

  // Moves the bytes out of the envelope, so a chunk is never copied. Its crc32c is the one that the
  // validator has just checked. Fails with INVALID_ARGUMENT, and leaves the envelope untouched, for
  // a chunk that may never be stored, including one of another agent's stream.
  absl::StatusOr<ReceivedChunk> Admit(v1::ChunkEnvelope& envelope, const std::string& agent_id);
  // The same for any agent's chunk, for checking stored ones again.
  absl::StatusOr<ReceivedChunk> Examine(v1::ChunkEnvelope& envelope);

  // A workspace holds the buffers of one validation, which are large and therefore reused. The
  // lease takes one for the duration of a call.
 private:
  struct Workspace;
  class Lease;

  // Moves the bytes out of the envelope and fails as Admit does; with a null `agent_id` for any
  // agent's stream.
  absl::StatusOr<ReceivedChunk> Take(v1::ChunkEnvelope& envelope, const std::string* agent_id);

  Mutex mutex_;
  // Workspaces that no call uses at present. They are never freed before the destructor.
  std::vector<std::unique_ptr<Workspace>> idle_ NT_GUARDED_BY(mutex_);
};

// Returns a function that checks stored chunks as `door` checks received ones. `door` must outlive
// it. One thread at a time.
ExamineChunk ExamineThrough(ChunkAdmission& door);

}  // namespace neurontrace
