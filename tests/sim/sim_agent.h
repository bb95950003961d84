// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/control/control_session.h"
#include "agent/upload/upload_queue.h"
#include "agent/upload/uploader.h"
#include "tests/sim/process_runner.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_source.h"

namespace neurontrace {

// One machine: what outlives its agent.
struct SimHost {
  AgentInfo info;
  SimLink link;
  SimSource::Workers workers;
};

// One life of an agent's process: what Agent builds, on the world's time. Destroying it is kill -9.
class SimAgent {
 public:
  struct Options {
    size_t queue_bytes = limits::kAgentQueueBytesMax;
    uint32_t unacked_max = limits::kUnackedChunksMax;
    // Stands between the source and the queue; for simulations that are to fail.
    std::function<std::unique_ptr<ChunkSink>(ChunkSink&)> wrap_sink;
  };

  // All outlive it.
  SimAgent(SimWorld& world, SimNetwork& network, SimHost& host, const Options& options);
  ~SimAgent();

  size_t queue_bytes() const { return queue_.bytes(); }
  size_t queue_chunks() const { return queue_.chunks(); }
  size_t unacked() const { return uploader_.unacked(); }
  const UploadQueue::Counters& queue_counters() const { return queue_.counters(); }

 private:
  ProcessRunner runner_;
  UploadQueue queue_;
  std::unique_ptr<ChunkSink> sink_;  // in front of it; null: nothing is
  Uploader uploader_;
  ControlSession control_;
  SimSource source_;
};

}  // namespace neurontrace
