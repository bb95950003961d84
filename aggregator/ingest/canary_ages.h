// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "trace/chunk_header.h"
#include "trace/ids.h"

namespace neurontrace {

// When the last canary of each live stream was sent that is stored here: what says that data flows,
// seen from this end. A stream is live from its first chunk to its last; before its first canary it
// counts as if one had been sent with that chunk. Beyond limits::kCanaryStreamsMax they are not
// watched. Any thread.
class CanaryAges {
 public:
  // A chunk is durable. Both times are now.
  void OnStored(const ChunkHeader& header, uint64_t realtime_ns, uint64_t monotonic_ns);
  // Lets go of captures that do not go on: of their streams nothing is due any more.
  void KeepOnly(const std::function<bool(const CaptureId&)>& goes_on);

  // The age of the last canary of the stream that is worst off, by the clock of its instance when
  // it was sent and by ours since it came; nothing without live streams.
  std::optional<uint64_t> OldestNs(uint64_t monotonic_ns) const;
  size_t streams() const;

 private:
  using Streams = absl::flat_hash_map<StreamIdentity, uint64_t>;  // sent, on our monotonic clock

  mutable std::mutex mutex_;
  // All guarded by mutex_:
  std::map<CaptureId, Streams> captures_;
  size_t streams_ = 0;
};

}  // namespace neurontrace
