// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/canary_ages.h"

#include <algorithm>
#include <iterator>

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
  const uint64_t in_flight_ns =
      realtime_ns > header.canary_realtime_ns ? realtime_ns - header.canary_realtime_ns : 0;
  const uint64_t sent_ns = monotonic_ns - std::min(monotonic_ns, in_flight_ns);
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

}  // namespace neurontrace
