// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "tests/fake_nrt/stop_signal.h"

namespace neurontrace {

struct OwnProfilerOptions {
  enum class Kind { kNone, kSysTrace, kInspect };
  Kind kind = Kind::kNone;
  int64_t delay_ns = 0;                 // after the workload began
  int64_t duration_ns = INT64_MAX / 2;  // or until the workload ends
  uint64_t max_events_per_nc = 1 << 20;
  std::string output_dir = "./output";  // of nrt_inspect
  std::string documents;                // file for what nrt_sys_trace_fetch_events returned
};

// A profiler that the application itself uses, as frameworks do: it takes the one capture of the
// process for a while, by nrt_sys_trace_* (and then fetches everything) or by nrt_inspect_*. Finds
// the functions by name, as they may be absent. Runs on a thread of its own between Start and
// Finish.
class OwnProfiler {
 public:
  explicit OwnProfiler(const OwnProfilerOptions& options) : options_(options) {}

  void Start();
  // Ends the profile if it still runs, and joins the thread.
  void Finish();

  // After Finish().
  bool refused() const { return refused_; }  // somebody else held the capture
  uint64_t fetched() const { return fetched_; }

 private:
  void Run();
  void RunSysTrace(int64_t end_ns);
  void RunInspect(int64_t end_ns);
  void Fetch();

  const OwnProfilerOptions options_;
  StopSignal finish_;
  std::ofstream documents_;
  bool refused_ = false;
  uint64_t fetched_ = 0;
  std::thread thread_;
};

}  // namespace neurontrace
