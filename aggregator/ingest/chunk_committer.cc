// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/chunk_committer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <iterator>
#include <string_view>

#include "lib/trace/limits.h"

namespace neurontrace {

void CanaryAges::OnStored(const ChunkHeader& header, uint64_t realtime_ns, uint64_t monotonic_ns) {
  const MutexLock lock(mutex_);
  if (header.end_of_stream) {
    const auto capture = captures_.find(header.capture_id);
    if (capture == captures_.end()) return;
    streams_ -= capture->second.erase(header.stream);
    if (capture->second.empty()) captures_.erase(capture);
    return;
  }
  if (!header.is_canary()) {
    const auto capture = captures_.find(header.capture_id);
    const bool is_known = capture != captures_.end() && capture->second.contains(header.stream);
    if (is_known || streams_ >= limits::kCanaryStreamsMax) return;
    captures_[header.capture_id].try_emplace(header.stream, monotonic_ns);
    ++streams_;
    return;
  }
  // A host's clock ahead of ours would give a negative time; such a canary counts as just sent.
  const uint64_t under_way_ns =
      realtime_ns > header.canary_realtime_ns ? realtime_ns - header.canary_realtime_ns : 0;
  const uint64_t sent_ns = monotonic_ns - std::min(monotonic_ns, under_way_ns);
  Streams& streams = captures_[header.capture_id];
  if (const auto known = streams.find(header.stream); known != streams.end()) {
    known->second = sent_ns;
  } else if (streams_ < limits::kCanaryStreamsMax) {
    streams.emplace(header.stream, sent_ns);
    ++streams_;
  }
}

void CanaryAges::KeepOnly(const std::function<bool(const CaptureId&)>& is_running) {
  const MutexLock lock(mutex_);
  for (auto it = captures_.begin(); it != captures_.end();) {
    if (is_running(it->first)) {
      ++it;
      continue;
    }
    streams_ -= it->second.size();
    it = captures_.erase(it);
  }
}

void CanaryAges::ForgetLost(uint64_t older_than_ns, uint64_t monotonic_ns,
                            const std::function<bool(const std::string& agent_id)>& is_lost) {
  const MutexLock lock(mutex_);
  for (auto it = captures_.begin(); it != captures_.end();) {
    streams_ -= absl::erase_if(it->second, [&](const auto& stream) {
      return stream.second + older_than_ns < monotonic_ns && is_lost(stream.first.agent_id);
    });
    it = it->second.empty() ? captures_.erase(it) : std::next(it);
  }
}

std::optional<uint64_t> CanaryAges::OldestNs(uint64_t monotonic_ns) const {
  const MutexLock lock(mutex_);
  std::optional<uint64_t> oldest;
  for (const auto& [capture, streams] : captures_) {
    for (const auto& [stream, sent_ns] : streams) {
      oldest = std::max(oldest.value_or(0), monotonic_ns - std::min(monotonic_ns, sent_ns));
    }
  }
  return oldest;
}

size_t CanaryAges::streams() const {
  const MutexLock lock(mutex_);
  return streams_;
}

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
  if (wrote || !results.ok()) NoteHealth(results.status());
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
    if (results.ok() && (*results)[i].differs) NoteConflict(chunk.header);
    if (results.ok()) {
      group.dones[i]((*results)[i]);
    } else {
      group.dones[i](results.status());
    }
  }
  // After all answers: releasing lets calls continue on this thread.
  for (const auto& [agent_id, sum] : bytes) budget_.Release(std::string(agent_id), sum);
}

void ChunkCommitter::NoteConflict(const ChunkHeader& header) {
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

// A full disk fails many times a second, so only changes are reported. A change from a full disk,
// which passes, to a failing one, which does not, counts.
void ChunkCommitter::NoteHealth(const absl::Status& status) {
  if (status.code() == health_) return;
  health_ = status.code();
  if (status.ok()) {
    SPDLOG_INFO("chunks can be stored again");
  } else {
    SPDLOG_WARN("chunks are not stored, and agents are asked to resend them: {}",
                std::string(status.message()));
  }
  observer_.OnWriteHealth(status);
}

}  // namespace neurontrace
