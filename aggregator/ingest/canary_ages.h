// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
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

}  // namespace neurontrace
