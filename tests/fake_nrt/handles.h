// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tests/fake_nrt/capture.h"

// The opaque types of the interface.
struct nrt_sys_trace_config {
  neurontrace::CaptureSettings settings;
};
struct nrt_sys_trace_fetch_options {
  neurontrace::FetchBounds bounds;
};
struct nrt_inspect_config {
  neurontrace::CaptureSettings settings;
  int session_id = 1;
  std::string output_dir = "./output";
  bool inspect = false;
  bool inspect_on_fail = false;
  unsigned activities = 0xf;  // bit per name of kActivities
};

namespace neurontrace {

// The handles of one type that callers hold. A freed one keeps its address for a while, so that its
// further use is recognised instead of hitting a younger handle. Any thread may call.
template <typename T>
class HandleSet {
 public:
  T* New() {
    auto handle = std::make_unique<T>();
    T* pointer = handle.get();
    const std::lock_guard lock(mutex_);
    live_.emplace(pointer, std::move(handle));
    return pointer;
  }
  bool IsLive(const T* pointer) const {
    const std::lock_guard lock(mutex_);
    return live_.contains(pointer);
  }
  // False for what is no live handle.
  bool Free(const T* pointer) {
    const std::lock_guard lock(mutex_);
    auto found = live_.extract(pointer);
    if (found.empty()) return false;
    freed_.push_back(std::move(found.mapped()));
    if (freed_.size() > kFreedKept) freed_.pop_front();
    return true;
  }

 private:
  static constexpr size_t kFreedKept = 1024;
  mutable std::mutex mutex_;
  std::unordered_map<const T*, std::unique_ptr<T>> live_;  // guarded by mutex_
  std::deque<std::unique_ptr<T>> freed_;                   // guarded by mutex_
};

}  // namespace neurontrace
