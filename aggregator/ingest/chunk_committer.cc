// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_committer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <string_view>

namespace neurontrace {

ChunkCommitter::ChunkCommitter(ChunkStore& store, IngestBudget& budget, IngestMetrics& metrics,
                               const Clock& clock, CommitObserver& observer)
    : store_(store), budget_(budget), metrics_(metrics), clock_(clock), observer_(observer) {}

void ChunkCommitter::Commit(Group& group) {
  assert(group.dones.size() == group.chunks.size());
  const uint64_t begin_ns = clock_.MonotonicNs();
  const auto results = store_.PutBatch(group.chunks);
  assert(!results.ok() || results->size() == group.chunks.size());
  const uint64_t end_ns = clock_.MonotonicNs();
  const uint64_t realtime_ns = clock_.RealtimeNs();
  metrics_.commit_seconds.Observe(static_cast<double>(end_ns - begin_ns) * 1e-9);
  metrics_.commit_chunks.Observe(static_cast<double>(group.chunks.size()));
  if (!results.ok()) metrics_.store_errors.Increment();
  // If every chunk was a duplicate or came too early, nothing was written and the store's health is
  // unknown.
  const bool wrote = results.ok() && std::any_of(results->begin(), results->end(), [](auto& each) {
                       return each.outcome == PutOutcome::kStored;
                     });
  if (wrote || !results.ok()) RecordHealth(results.status());
  std::map<std::string_view, size_t> bytes;  // by agent; ordered, so that runs are reproducible
  for (size_t i = 0; i < group.chunks.size(); ++i) {
    const ReceivedChunk& chunk = group.chunks[i];
    bytes[chunk.header.stream.agent_id] += chunk.bytes();
    const bool stored = results.ok() && (*results)[i].outcome == PutOutcome::kStored;
    if (stored) canary_ages_.OnStored(chunk.header, realtime_ns, end_ns);
    if (stored && chunk.header.is_canary()) {
      metrics_.canaries_stored.Increment();
    } else if (stored) {
      metrics_.chunks_stored.Increment();
      metrics_.events_stored.Increment(chunk.header.event_count);
      metrics_.bytes_stored.Increment(static_cast<double>(chunk.bytes()));
    }
    if (results.ok() && (*results)[i].differs) CountConflict(chunk.header);
    if (results.ok()) {
      group.dones[i]((*results)[i]);
    } else {
      group.dones[i](results.status());
    }
    if (stored) observer_.OnStored(chunk);
  }
  // After all answers: releasing lets calls continue on this thread.
  for (const auto& [agent_id, sum] : bytes) budget_.Release(std::string(agent_id), sum);
}

void ChunkCommitter::CountConflict(const ChunkHeader& header) {
  metrics_.chunks_conflicting.Increment();
  if (last_conflict_ == header.stream) return;
  last_conflict_ = header.stream;
  const std::string what = fmt::format(
      "two producers share the stream {}: chunk {} was sent again with different contents, which "
      "are not stored; check for two agents with the same id",
      ToString(header.stream), header.sequence);
  SPDLOG_WARN("capture {}: {}", header.capture_id.ToString(), what);
  observer_.OnConflict(header.capture_id, what);
}

// A full disk fails many times a second, so only changes are logged. A change from a full disk,
// which passes, to a failing one, which does not, counts.
void ChunkCommitter::RecordHealth(const absl::Status& status) {
  const bool is_change = status.code() != health_;
  if (status.ok() && !is_change) return;
  health_ = status.code();
  if (is_change && status.ok()) {
    SPDLOG_INFO("chunks can be stored again");
  } else if (is_change) {
    SPDLOG_WARN("chunks are not stored, and agents are asked to resend them: {}",
                std::string(status.message()));
  }
  observer_.OnWriteHealth(status);
}

}  // namespace neurontrace
