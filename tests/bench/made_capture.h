// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "aggregator/timeline/chunk_source.h"

namespace neurontrace {

// A capture that is made while it is read, so that its length costs no memory: streams of one chunk
// a second, all alike, with `spans` spans of five kinds in each chunk and one from each chunk into
// the next.
struct MadeCapture {
  static constexpr uint64_t kBaseNs = 1'750'000'000'000'000'000u;
  static constexpr uint64_t kChunkNs = 1'000'000'000;

  uint32_t streams = 1;
  uint64_t seconds = 1;
  uint64_t spans = 500;
  // Starts and lengths of spans vary, as real ones do. Otherwise all are alike, and a chunk
  // compresses to a tenth of a real one's size.
  bool is_varied = false;

  uint32_t events_per_chunk() const { return static_cast<uint32_t>(2 * spans + 2); }
  StreamIdentity IdentityOf(uint32_t stream) const;
  ChunkEntry EntryOf(uint64_t sequence) const;
  std::string ColumnsOf(uint64_t sequence) const;  // not compressed
  static const std::string& CrossingType();
  static std::vector<std::string> EventTypes();  // of each chunk, the crossing one first
};

class MadeChunkSource : public ChunkSource {
 public:
  explicit MadeChunkSource(const MadeCapture& capture) : capture_(capture) {}

  absl::StatusOr<CaptureDescription> Describe() override;
  absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                         std::vector<ChunkEntry>& entries) override;
  absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) override;

 private:
  static constexpr size_t kKept = 8;  // chunks made last; streams are read side by side

  const MadeCapture capture_;
  std::map<uint64_t, std::string> made_;
};

}  // namespace neurontrace
