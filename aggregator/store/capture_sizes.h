// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "lib/base/mutex.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Bytes stored of each capture that was asked for or written to. Any thread, without waiting for
// the disk: quotas ask it for every group of chunks.
class CaptureSizes {
 public:
  // Returns nullopt for a capture whose size was never computed.
  std::optional<uint64_t> Find(const CaptureId& capture) const {
    const MutexLock lock(mutex_);
    const auto it = bytes_.find(capture);
    return it == bytes_.end() ? std::nullopt : std::optional(it->second);
  }
  void Set(const CaptureId& capture, uint64_t bytes) {
    const MutexLock lock(mutex_);
    bytes_[capture] = bytes;
  }
  // Replaces the size `from` of a part of the capture by `to`; the unsigned difference may be
  // negative.
  void Move(const CaptureId& capture, uint64_t from, uint64_t to) {
    const MutexLock lock(mutex_);
    uint64_t& bytes = bytes_[capture];
    assert(bytes >= from);
    bytes += to - from;
  }
  void Erase(const CaptureId& capture) {
    const MutexLock lock(mutex_);
    bytes_.erase(capture);
  }

 private:
  mutable Mutex mutex_;
  absl::flat_hash_map<CaptureId, uint64_t> bytes_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
