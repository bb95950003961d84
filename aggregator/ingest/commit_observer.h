// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "aggregator/store/chunk_store.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Receives what ChunkCommitter finds out about the store and the agents while it writes. Called on
// the writer's thread, between two groups of chunks. Must return quickly.
class CommitObserver {
 public:
  virtual ~CommitObserver() = default;

  // Called for each write that fails, and for the first one that works again.
  virtual void OnWriteHealth(const absl::Status& status) = 0;
  // Called for a chunk that was sent again with other contents than the stored ones, once for
  // consecutive ones of a stream. `what` describes it for people.
  virtual void OnConflict(const CaptureId& /*capture*/, const std::string& /*what*/) {}
  // Called for each chunk that was stored, after its sender was answered; those of one stream come
  // in the order of their sequence.
  virtual void OnStored(const ReceivedChunk& /*chunk*/) {}
};

}  // namespace neurontrace
