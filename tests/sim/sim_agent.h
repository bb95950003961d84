// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/control/control_observer.h"
#include "agent/control/control_session.h"
#include "agent/source/chunk_sink.h"
#include "agent/spool/spool.h"
#include "agent/upload/delivery_queue.h"
#include "agent/upload/uploader.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/weak_tasks.h"
#include "tests/sim/sim_ledger.h"
#include "tests/sim/sim_network.h"
#include "tests/sim/sim_source.h"
#include "tests/sim/sim_world.h"

namespace neurontrace {

// Tells the ledger of each row that an agent says it keeps.
class WatchingSink final : public ChunkSink {
 public:
  // Both outlive it.
  WatchingSink(ChunkSink& sink, SimLedger& ledger) : sink_(sink), ledger_(ledger) {}

  bool HasRoom(const CaptureId& capture_id) const override { return sink_.HasRoom(capture_id); }
  void Submit(Chunk chunk, Done done) override {
    std::vector<uint64_t> rows = ledger_.RowsOf(chunk);
    sink_.Submit(std::move(chunk), [&ledger = ledger_, rows = std::move(rows),
                                    done = std::move(done)](const Receipt& receipt) {
      if (receipt.fate == Fate::kKept) ledger.OnKept(rows);
      if (done) done(receipt);
    });
  }

 private:
  ChunkSink& sink_;
  SimLedger& ledger_;
};

// The sequence on which a simulated process waits for its disk: one thing after the other, each
// taking its time. What is not done when the process ends never is.
class DiskRunner final : public TaskRunner {
 public:
  // `operation_ns` may change while it runs, and outlives it.
  DiskRunner(SimWorld& world, const uint64_t& operation_ns)
      : world_(world), operation_ns_(operation_ns) {}

  void PostTask(Task task) override { PostDelayedTask(std::move(task), 0); }
  void PostDelayedTask(Task task, uint64_t delay_ns) override {
    const uint64_t now_ns = world_.clock.MonotonicNs();
    busy_until_ns_ = std::max(busy_until_ns_, now_ns + delay_ns) + operation_ns_;
    world_.runner.PostDelayedTask(weak_tasks_.Wrap(std::move(task)), busy_until_ns_ - now_ns);
  }
  void AddReadableWatch(int, Task) override {}
  void RemoveReadableWatch(int) override {}
  bool RunsTasksOnCurrentThread() const override { return true; }

 private:
  SimWorld& world_;
  const uint64_t& operation_ns_;
  uint64_t busy_until_ns_ = 0;
  WeakTasks weak_tasks_;
};

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
class SimAgent final : private ControlObserver {
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
  ~SimAgent() override;

  // As by SIGTERM: sources are read no further, and what they gave is kept and sent. The process
  // ends when it is destroyed.
  void BeginToEnd();

  size_t queue_bytes() const { return queue_.bytes(); }
  size_t queue_chunks() const { return queue_.chunks(); }
  uint64_t spool_bytes() const { return spool_ == nullptr ? 0 : spool_->bytes(); }
  size_t unacked() const { return uploader_.unacked(); }

 private:
  std::unique_ptr<Spool> MakeSpool(SimWorld& world, SimHost& host, const Options& options);
  // As Agent::OpenSpool.
  void OpenSpool();
  void ResumeOffline();

  // ControlObserver: what Agent does, but without clocks, triggers, samples of the host and the
  // check of the aggregator.
  void OnWelcome(const std::set<CaptureId>& captures) override;
  void OnConnectionLost() override;
  bool WasWronglyResumed(const CaptureResume& resume) override;
  void OnCaptureRunning(const CaptureId& capture_id, const CaptureSpec& spec) override;
  void OnCaptureOver(const CaptureId& capture_id) override;
  void AddSpoolCursors(CaptureResume& resume) override;
  bool IsDelivered(const CaptureId& capture_id) const override;

  SimWorld& world_;
  SimLedger& ledger_;
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
