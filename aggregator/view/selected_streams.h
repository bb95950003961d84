// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/view/time_sample.h"

namespace neurontrace {

class DigestFeed;

// A capture reduced to some of its streams, so that a question about a few rows of the page costs
// what these rows cost. Reads through to `source`. Used by one thread at a time.
class SelectedStreams final : public ChunkSource {
 public:
  // `source` must outlive this. `capture` is its description, which is not read again. Numbers that
  // the capture does not have are ignored. Stops reading chunks beyond `chunks_max`: further ones
  // are reported as unreadable to the reader, but not to the source. Hides chunks that `digests`
  // have, unless it is nullptr; else it must outlive this, too.
  SelectedStreams(ChunkSource& source, const CaptureDescription& capture,
                  const std::vector<uint32_t>& numbers, uint64_t chunks_max,
                  DigestFeed* digests = nullptr);

  // Hides the events of chunks that are wholly outside a sample. `clocks` must outlive this. Called
  // before anything is read.
  void ReadOnly(const TimeSample& sample, const CaptureClocks& clocks);

  absl::StatusOr<CaptureDescription> Describe() override { return selected_; }
  absl::Status ReadIndex(uint32_t stream, IndexPosition from, size_t entries_max,
                         std::vector<ChunkEntry>& entries) override;
  absl::Status ReadColumns(uint32_t stream, uint64_t sequence, std::string& columns) override;
  void ReportUnreadable(uint32_t stream, uint64_t sequence, const absl::Status& why) override;

  uint64_t chunks_read() const { return chunks_read_; }
  // Chunks that were not read because of the limit.
  uint64_t chunks_refused() const { return chunks_refused_; }

 private:
  ChunkSource& source_;
  const uint64_t chunks_max_;
  DigestFeed* const digests_;
  TimeSample sample_;
  absl::flat_hash_map<uint32_t, const ClockMap*> clock_of_;  // by number; of a sample
  CaptureDescription selected_;
  uint64_t chunks_read_ = 0;
  uint64_t chunks_refused_ = 0;
  // The chunk that was refused last: the reader reports it next.
  std::pair<uint32_t, uint64_t> refused_ = {UINT32_MAX, UINT64_MAX};
};

}  // namespace neurontrace
