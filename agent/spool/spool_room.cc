// SPDX-License-Identifier: Apache-2.0
// How the spool stays within its budget, and captures within their shares.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <vector>

#include "agent/spool/spool.h"

namespace neurontrace {

Spool::Room Spool::MakeRoom(const CaptureId& capture_id, uint64_t bytes) {
  for (;;) {
    const auto it = captures_.find(capture_id);
    const bool over_share =
        it != captures_.end() && it->second.bytes + bytes > options_.capture_bytes_max;
    const bool over_all = bytes_ + stuck_bytes_ + bytes > bytes_max() ||
                          chunks_ >= limits::kSpoolChunksMax ||
                          (it == captures_.end() && captures_.size() >= limits::kSpoolCapturesMax);
    if (!over_share && !over_all) return Room::kEnough;
    const Room none = over_share ? Room::kNoneForCapture : Room::kNone;
    if (RemoveIdle(capture_id, !over_share)) continue;
    if (options_.when_full == WhenFull::kRefuseNewest) return none;
    Capture* const victim = Victim(capture_id, over_share);
    if (victim == nullptr || victim->segments.empty()) return none;
    const uint64_t oldest = *victim->segments.begin();
    if (victim->in_job && victim->active == oldest) return none;  // being written
    DropSegment(oldest);
  }
}

// Segments that are still written to, though all in them is released.
bool Spool::RemoveIdle(const CaptureId& capture_id, bool any_capture) {
  bool some = false;
  for (auto& [id, capture] : captures_) {
    if (!any_capture && id != capture_id) continue;
    if (capture.active == 0 || capture.in_job || segments_[capture.active].chunks > 0) continue;
    Retire(std::exchange(capture.active, 0), false);
    some = true;
  }
  return some;
}

// The capture that gives way: the one that wants more than its share, else the one furthest over
// its own, which is the largest.
Spool::Capture* Spool::Victim(const CaptureId& wanting, bool over_share) {
  if (over_share) return &captures_[wanting];
  Capture* largest = nullptr;
  for (auto& [id, capture] : captures_) {
    if (largest == nullptr || capture.bytes > largest->bytes) largest = &capture;
  }
  return largest;
}

void Spool::DropSegment(uint64_t segment) {
  const CaptureId capture_id = segments_[segment].capture_id;
  ++counters_.segments_dropped;
  Retire(segment, true);
  listener_->OnSegmentDropped(capture_id, segment);
}

void Spool::Retire(uint64_t number, bool given_up) {
  const auto it = segments_.find(number);
  const Segment segment = it->second;
  segments_.erase(it);
  chunks_ -= segment.chunks;
  bytes_ -= segment.bytes;
  Capture& capture = captures_[segment.capture_id];
  capture.segments.erase(number);
  capture.bytes -= segment.bytes;
  if (capture.active == number) capture.active = 0;
  capture.cursor_dirty = true;
  removals_.push_back({DirectoryOf(segment.capture_id), number, segment.bytes, given_up, false});
}

// Segments that are to be removed still take room: what they leave is seen after the next job.
void Spool::TakeCapacity(const FileSystem::Capacity& capacity) {
  if (options_.free_percent_min == 0) return;
  const uint64_t kept_free = capacity.total_bytes / 100 * options_.free_percent_min;
  uint64_t removed_later = 0;
  for (const SpoolJob::Removal& removal : removals_) removed_later += removal.bytes;
  const uint64_t held = bytes_ + removed_later;
  const bool was_short = IsShortOfDisk();
  disk_bytes_max_ = capacity.free_bytes >= kept_free
                        ? held + (capacity.free_bytes - kept_free)
                        : held - std::min(held, kept_free - capacity.free_bytes);
  if (IsShortOfDisk() == was_short) return;
  if (IsShortOfDisk()) {
    spdlog::warn(
        "spool: its disk has {} of {} bytes free, and {} are to stay free: it may have {} "
        "bytes instead of {}",
        capacity.free_bytes, capacity.total_bytes, kept_free, disk_bytes_max_, options_.bytes_max);
  } else {
    spdlog::info("spool: its disk has room for {} bytes again", options_.bytes_max);
  }
}

}  // namespace neurontrace
