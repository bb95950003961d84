// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tests/fake_nrt/capture.h"
#include "tests/fake_nrt/event_form.h"
#include "tests/fake_nrt/fetch_buffer.h"
#include "tests/fake_nrt/misuse_log.h"
#include "tests/fake_nrt/nrt_api.h"

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

enum class RuntimePhase { kBeforeInit, kOpen, kClosed };

// The simulated runtime of this process: what the C entry points share. There is one, as there is
// one of the real library, and a forked child gets a new one that was never initialised. Any thread
// may call anything.
class Runtime {
 public:
  static Runtime& Get();
  static FormTable& Forms();

  Runtime();

  NRT_STATUS Init();
  void Close();

  // A communicator gave this logical core its global device id.
  NRT_STATUS SetGlobalId(int64_t nc_idx, uint32_t global_id);
  NRT_STATUS Fetch(const FetchBounds& bounds, char** text, size_t* bytes);

  // Begins the runtime's own profile; its end writes a summary of what it recorded.
  NRT_STATUS BeginInspect(const CaptureSettings& settings, const std::string& output_dir);
  NRT_STATUS EndInspect();

  RuntimePhase phase() const { return phase_.load(); }
  bool IsOpen() const { return phase() == RuntimePhase::kOpen; }
  Topology topology() const;

  MisuseLog misuse;
  Capture capture;
  FetchBufferPool buffers;
  HandleSet<nrt_sys_trace_config> configs;
  HandleSet<nrt_sys_trace_fetch_options> fetch_options;
  HandleSet<nrt_inspect_config> inspect_configs;
  std::atomic<int> trace_calls{0};  // trace functions that are being executed

 private:
  mutable std::mutex mutex_;
  std::atomic<RuntimePhase> phase_{RuntimePhase::kBeforeInit};
  std::atomic<uint32_t> cores_{0};  // visible logical ones, once open
  Topology topology_;               // guarded by mutex_
  std::string inspect_dir_;         // guarded by mutex_
  Capture::GlobalIds gids_;
};

// Is in every trace function: counts the call as running and refuses it, as a misuse, outside
// of the time between nrt_init and nrt_close.
class TraceCall {
 public:
  explicit TraceCall(std::string_view function);
  ~TraceCall() { runtime_.trace_calls.fetch_sub(1); }
  TraceCall(const TraceCall&) = delete;
  TraceCall& operator=(const TraceCall&) = delete;

  // NRT_SUCCESS, or what the function has to return.
  NRT_STATUS status() const { return status_; }
  bool refused() const { return status_ != NRT_SUCCESS; }
  Runtime& runtime() const { return runtime_; }
  // Reports "function: what" and returns `status`.
  NRT_STATUS Misuse(std::string_view what, NRT_STATUS status) const;

 private:
  Runtime& runtime_;
  std::string_view function_;
  NRT_STATUS status_ = NRT_SUCCESS;
};

}  // namespace neurontrace
