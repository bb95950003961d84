// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "trace/ids.h"

namespace neurontrace {

// How many bytes are stored of each capture that was asked for or written to. Any thread, and none
// waits for the disk.
class CaptureSizes {
 public:
  std::optional<uint64_t> Find(const CaptureId& capture) const {
    const std::lock_guard lock(mutex_);
    const auto it = bytes_.find(capture);
    return it == bytes_.end() ? std::nullopt : std::optional(it->second);
  }
  void Set(const CaptureId& capture, uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    bytes_[capture] = bytes;
  }
  // From one size of a part of it to another.
  void Move(const CaptureId& capture, uint64_t from, uint64_t to) {
    const std::lock_guard lock(mutex_);
    bytes_[capture] += to - from;
  }
  void Erase(const CaptureId& capture) {
    const std::lock_guard lock(mutex_);
    bytes_.erase(capture);
  }

 private:
  mutable std::mutex mutex_;
  absl::flat_hash_map<CaptureId, uint64_t> bytes_;  // guarded by mutex_
};

}  // namespace neurontrace
