// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "tests/fake_nrt/capture.h"
#include "tests/fake_nrt/event_form.h"
#include "tests/fake_nrt/fetch_buffer.h"
#include "tests/fake_nrt/handles.h"
#include "tests/fake_nrt/misuse_log.h"
#include "tests/fake_nrt/nrt_api.h"
#include "tests/fake_nrt/topology.h"

namespace neurontrace {

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

// Stands in every trace function: counts the call as running and refuses it, as a misuse, outside
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
