// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "aggregator/store/capture_reader.h"
#include "aggregator/store/clock_evidence_store.h"
#include "trace/decoded_chunk.h"

namespace neurontrace {

// The chunks of a stream, in the order in which they were recorded, which is that of its ring:
// times are what is in question. Holds one chunk, and a number for each. One thread at a time.
class CoreChunks {
 public:
  explicit CoreChunks(const CaptureReader& reader) : reader_(reader) {}

  // Those with events in a stretch of their host's REALTIME, both ends included. Chunks that are
  // damaged, or expire at this moment, are passed over. Errors of the store.
  absl::Status ForEach(uint32_t stream, const RealtimeWindow& window,
                       const std::function<void(const DecodedChunk&)>& visit);

  uint64_t unreadable() const { return unreadable_; }  // chunks of all streams

 private:
  const CaptureReader& reader_;
  std::vector<uint64_t> sequences_;
  StoredChunk stored_;
  std::string columns_;
  DecodedChunk chunk_;
  uint64_t unreadable_ = 0;
};

}  // namespace neurontrace
