// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/chunk_sink.h"
#include "agent/source/host/proc_files.h"
#include "agent/source/shape_cache.h"
#include "agent/source/source_metrics.h"
#include "agent/source/stream_writer.h"
#include "lib/base/clock.h"
#include "lib/trace/ids.h"
#include "lib/trace/stream_cursor.h"

namespace neurontrace {

// The counters of a host at one moment.
struct HostReading {
  uint64_t realtime_ns = 0;
  uint64_t monotonic_ns = 0;
  std::vector<CpuTimes> cpus;  // in the order of /proc/stat
  MemoryReading memory;
};

// Reads `stat` and `meminfo` of `proc_root`, which is /proc but in tests. A millisecond or less,
// and blocks for no longer. UNAVAILABLE where a file cannot be read; else as the parsers say.
absl::StatusOr<HostReading> ReadHost(const std::string& proc_root, const Clock& clock);

// The samples of one host in one capture, as lib/trace/host_samples.h has them. On the agent's
// sequence.
//
// The position of a sample is the CLOCK_MONOTONIC of its reading, so that an agent that starts
// again on the same boot knows since when it has none: that stretch goes into the stream as a loss
// of no events, with words. No event of the runtime is missing there, and how many samples there
// would have been says its length.
class HostStream {
 public:
  // References outlive the stream. `first` is where its first interval begins.
  HostStream(const CaptureId& capture_id, StreamIdentity identity, const Clock& clock,
             ChunkSink& sink, AgentSourceMetrics& metrics, HostReading first);

  // Continues behind what the store holds, of an agent before this one. Before anything else.
  // `is_confirmed`: the capture is known to have run until now, and lacks samples until now. Else
  // it may have stopped meanwhile, and only where the gap begins is told.
  void Resume(const StreamCursor& cursor, bool is_confirmed);

  // The interval since the reading before this one. One that is too short to say anything, or that
  // finds no room, becomes part of the next.
  void Take(HostReading reading);
  // No intervals until GoOn, whose reading the next one begins with: nothing records meanwhile, and
  // nothing is missing.
  void Pause() { paused_ = true; }
  void GoOn(HostReading first);
  bool paused() const { return paused_; }
  // Once a second, paused or not.
  void Tick();
  void Flush();
  void End();
  bool finished() const { return writer_.finished(); }

 private:
  void AppendCpu(uint64_t position, const CpuTimes& before, const CpuTimes& after,
                 uint64_t interval_ns);
  void AppendMemory(uint64_t position, const HostReading& reading);

  const CaptureId capture_id_;
  ChunkSink& sink_;
  AgentSourceMetrics& metrics_;
  const CachedShape cpu_shape_;
  const CachedShape memory_shape_;
  StreamWriter writer_;
  HostReading before_;
  uint64_t next_position_ = 0;
  bool paused_ = false;
  bool first_is_closed_ = false;  // the chunk of the first sample
};

}  // namespace neurontrace
