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

// Reads `stat` and `meminfo` of `proc_root`, which is /proc except in tests. Takes a millisecond or
// less and does not block for longer, as the kernel makes these files from memory. Fails with
// UNAVAILABLE if a file cannot be read, and with the errors of the parsers.
absl::StatusOr<HostReading> ReadHost(const std::string& proc_root, const Clock& clock);

// The samples of one host in one capture, in the form of lib/trace/host_samples.h. On the agent's
// sequence.
//
// The position of a sample is the CLOCK_MONOTONIC of its reading, so that an agent that restarts on
// the same boot knows since when samples are missing. That gap goes into the stream as a loss of no
// events with a text: no event of the runtime is missing, and the length of the gap tells how many
// samples there would have been.
class HostStream {
 public:
  // References outlive the stream. The first interval begins at `first`.
  HostStream(const CaptureId& capture_id, StreamIdentity identity, const Clock& clock,
             ChunkSink& sink, AgentSourceMetrics& metrics, HostReading first);

  // Continues behind what the store holds of an earlier run of the agent. To be called before any
  // other function. With `is_confirmed` the capture is known to have run until now, so samples are
  // missing until now. Otherwise it may have stopped meanwhile, and only the beginning of the gap
  // is recorded.
  void Resume(const StreamCursor& cursor, bool is_confirmed);

  // Records the interval since the previous reading. One that is too short to be meaningful, or
  // that finds no room in the queue, becomes part of the next.
  void Take(HostReading reading);
  // Records no intervals until Continue, whose reading begins the next one: nothing on the host
  // records meanwhile, so nothing is missing.
  void Pause() { paused_ = true; }
  void Continue(HostReading first);
  bool paused() const { return paused_; }
  // Closes the chunk if it is due. Called once a second, paused or not.
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
