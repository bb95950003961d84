// SPDX-License-Identifier: Apache-2.0
// What goes into the spool's next write, and where.
#include <algorithm>
#include <utility>

#include "agent/spool/spool.h"

namespace neurontrace {

// Captures take turns, so that none waits behind another's chunks.
void Spool::TakePending(SpoolJob& job) {
  blocked_ = false;
  waiting_.clear();
  batch_bytes_ = 0;
  std::set<CaptureId> no_more;
  for (bool some = true; some;) {
    some = false;
    for (auto& [capture_id, pending] : pending_) {
      if (pending.empty() || no_more.contains(capture_id)) continue;
      const Taken taken = TakeOne(capture_id, pending, job);
      if (taken == Taken::kNoMore) return;
      if (taken == Taken::kNoMoreOfCapture) no_more.insert(capture_id);
      some = true;
    }
  }
  std::erase_if(pending_, [](const auto& item) { return item.second.empty(); });
}

Spool::Taken Spool::TakeOne(const CaptureId& capture_id, std::deque<Pending>& pending,
                            SpoolJob& job) {
  const Pending next = pending.front();
  const auto chunk = next.chunk.lock();
  if (chunk == nullptr) {  // nobody waits for it any more
    pending.pop_front();
    return Taken::kOne;
  }
  const uint64_t bytes = kRecordHeadBytes + chunk->header().size() + chunk->columns().size();
  if (batch_bytes_ > 0 && batch_bytes_ + bytes > limits::kSpoolBatchBytesMax) return Taken::kNoMore;
  if (!next.first) {
    const uint64_t dropped = counters_.segments_dropped;
    const Room room = MakeRoom(capture_id, bytes);
    // What stands in for what was dropped goes first.
    if (dropped != counters_.segments_dropped && StandInWaits()) return Taken::kOne;
    if (room == Room::kNone) {
      blocked_ = true;
      return Taken::kNoMore;
    }
    if (room == Room::kNoneForCapture) {
      waiting_.insert(capture_id);
      return Taken::kNoMoreOfCapture;
    }
  }
  if (!Put(next, chunk, job)) return Taken::kNoMoreOfCapture;
  pending.pop_front();
  batch_bytes_ += bytes;
  return Taken::kOne;
}

bool Spool::StandInWaits() const {
  return std::any_of(pending_.begin(), pending_.end(), [](const auto& item) {
    return !item.second.empty() && item.second.front().first;
  });
}

// False if it has to wait for the next job: a capture has one segment in each, so that one segment
// follows another only when that is synced.
bool Spool::Put(const Pending& pending, const std::shared_ptr<const v1::ChunkEnvelope>& chunk,
                SpoolJob& job) {
  Capture& capture = captures_[pending.capture_id];
  const uint64_t bytes = kRecordHeadBytes + chunk->header().size() + chunk->columns().size();
  const bool fits =
      capture.active != 0 && segments_[capture.active].bytes + bytes <= segment_bytes_max_;
  if (!fits && capture.in_job) return false;
  SpoolJob::Append* append = nullptr;
  if (!capture.in_job) {
    if (!fits && capture.active != 0) {
      const uint64_t closed = std::exchange(capture.active, 0);
      if (segments_[closed].chunks == 0) Retire(closed, false);
    }
    append = &job.appends.emplace_back();
    append->directory = DirectoryOf(pending.capture_id);
    append->segment.capture_id = pending.capture_id;
    append->segment.agent_id = options_.agent_id;
    if (capture.active == 0) {
      capture.active = next_segment_++;
      capture.segments.insert(capture.active);
      append->create = true;
      append->segment.segment = capture.active;
      append->segment.salt = random_.Next64();
      const uint64_t header_bytes = EncodeSegmentHeader(append->segment).size();
      segments_[capture.active] = {pending.capture_id, header_bytes, append->segment.salt, 0};
      capture.bytes += header_bytes;
      bytes_ += header_bytes;
    }
    append->segment.segment = capture.active;
    append->segment.salt = segments_[capture.active].salt;
    append->offset = static_cast<uint32_t>(segments_[capture.active].bytes);
    capture.in_job = true;
    touched_.push_back(capture.active);
  } else {
    append = &*std::find_if(job.appends.begin(), job.appends.end(), [&](const auto& known) {
      return known.segment.segment == capture.active;
    });
  }
  Segment& segment = segments_[capture.active];
  const SpoolPlace place{capture.active, static_cast<uint32_t>(segment.bytes),
                         static_cast<uint32_t>(chunk->header().size()),
                         static_cast<uint32_t>(chunk->columns().size())};
  append->chunks.push_back(chunk);
  in_job_.push_back({pending, place});
  segment.bytes += bytes;
  ++segment.chunks;
  ++chunks_;
  capture.bytes += bytes;
  bytes_ += bytes;
  return true;
}

}  // namespace neurontrace
