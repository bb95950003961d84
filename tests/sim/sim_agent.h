// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/control/control_session.h"
#include "agent/spool/spool.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "lib/base/fake_file_system.h"
#include "tests/sim/disk_runner.h"
#include "tests/sim/process_runner.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_source.h"
#include "tests/sim/watching_sink.h"

namespace neurontrace {

// One machine: what outlives its agent.
struct SimHost {
  explicit SimHost(uint64_t seed) : disk(seed) {}

  AgentInfo info;
  SimLink link;
  FakeFileSystem disk;
  uint64_t disk_operation_ns = 0;
  bool was_read_only = false;  // the disk, at some time: the file `running` may be wrong then
  SimSource::Workers workers;
};

// One life of an agent's process: what Agent builds, on the world's time. Destroying it is kill -9.
class SimAgent {
 public:
  struct Options {
    bool has_spool = true;
    Spool::Options spool;
    size_t queue_bytes = limits::kAgentQueueBytesMax;
    uint32_t unacked_max = limits::kUnackedChunksMax;
    // Stands between the source and the queue; for simulations that are to fail.
    std::function<std::unique_ptr<ChunkSink>(ChunkSink&)> wrap_sink;
  };

  // All outlive it.
  SimAgent(SimWorld& world, SimLedger& ledger, SimNetwork& network, SimHost& host,
           const Options& options);
  ~SimAgent();

  // As by SIGTERM: sources are read no further, and what they gave is kept and sent. The process
  // ends when it is destroyed.
  void BeginToEnd();

  size_t queue_bytes() const { return queue_.bytes(); }
  size_t queue_chunks() const { return queue_.chunks(); }
  uint64_t spool_bytes() const { return spool_ == nullptr ? 0 : spool_->bytes(); }
  size_t unacked() const { return uploader_.unacked(); }
  const DeliveryQueue::Counters& queue_counters() const { return queue_.counters(); }

 private:
  std::unique_ptr<Spool> MakeSpool(SimWorld& world, SimHost& host, const Options& options);
  // As Agent::OpenSpool.
  void OpenSpool();
  void GoOnAlone();

  SimWorld& world_;
  SimHost& host_;
  ProcessRunner runner_;
  DiskRunner disk_runner_;
  std::unique_ptr<Spool> spool_;  // null: chunks stay in memory
  DeliveryQueue queue_;
  std::unique_ptr<ChunkSink> wrapped_;  // in front of it; null: nothing is
  WatchingSink sink_;
  Uploader uploader_;
  ControlSession control_;
  bool welcomed_ = false;
  SimSource source_;
};

}  // namespace neurontrace
