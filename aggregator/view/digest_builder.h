// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/digest_store.h"
#include "aggregator/timeline/chunk_source.h"
#include "aggregator/view/digest.h"

namespace neurontrace {

// Makes the digests of one stream after the other and stores them. Used by one thread at a time.
class DigestBuilder {
 public:
  // What one call of BuildStream did.
  struct Built {
    uint64_t digests = 0;
    uint64_t bytes = 0;
    uint64_t chunks_left = 0;  // without a digest: they are read one by one
  };
  // Called after each digest of level 0, so that the caller can pause.
  class Pacer {
   public:
    virtual ~Pacer() = default;
    // Returns false to end the work.
    virtual bool Continue() = 0;
  };

  // `store` must outlive this.
  explicit DigestBuilder(DigestStore& store) : store_(store) {}

  // Returns whether streams of this kind get digests: those of cores and hosts with a time that a
  // map applies to. Those of frameworks are read as a whole for their names, whatever is shown.
  static bool IsDigested(const StreamDescription& stream);

  // Makes what the stream lacks, oldest first. Chunks are complete in groups of kDigestBaseChunks;
  // the last group of a stream waits until `has_ended`, as does a group with an open span, unless
  // kDigestHorizonChunks follow it. `retry_at` is the caller's to keep for the stream, 0 at first:
  // no group is tried again before that many sequences exist. Deletes what retention has expired.
  //
  // Fails with errors of the source and the store, and with RESOURCE_EXHAUSTED at a limit of
  // lib/trace/view_limits.h. What was stored before stays valid.
  absl::StatusOr<Built> BuildStream(ChunkSource& source, const CaptureId& capture,
                                    const StreamDescription& stream, bool has_ended,
                                    uint64_t& retry_at, Pacer& pacer);

 private:
  struct Chain;
  static IndexPosition ScanFrom(const Chain& chain, const StreamDescription& stream);
  // Finds where to continue, and the spans that are open there.
  absl::StatusOr<Chain> Resume(const CaptureId& capture, const StreamDescription& stream) const;
  // Stores a digest of level 0, and those above that are complete with it.
  absl::Status PutWithLevels(const CaptureId& capture, const StreamDescription& stream,
                             const DigestNode& node, bool is_last, Built& built) const;
  // Returns the digest of the level around `first`, joined from those below; nullopt if they have
  // holes.
  absl::StatusOr<std::optional<DigestNode>> Join(const CaptureId& capture, uint32_t stream,
                                                 uint8_t level, uint64_t first) const;

  DigestStore& store_;
};

}  // namespace neurontrace
