// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "agent/clock/clock_collector.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/ingest/clock_metrics.h"
#include "aggregator/reference/reference_timescale.h"
#include "base/clock.h"
#include "base/event_loop.h"
#include "base/file_system.h"
#include "base/random.h"
#include "clock/host_clocks.h"

namespace neurontrace {

// The aggregator's own clock evidence: snapshots, events and UTC of the host that keeps the
// reference, collected as an agent does on its host and stored under ReferenceKeeper. It is what
// relates the reference to UTC; nobody is worse off without. On a thread of its own, as nothing
// there may wait for anything.
// thread: own clocks: collects evidence about the clocks of the aggregator's host
class KeeperClocks {
 public:
  // Batches that are given to the writer and not durable yet. Beyond: a new one is dropped, and
  // counted.
  static constexpr int kBatchesWaitingMax = 16;

  // What is in `deps` outlives this.
  struct Deps {
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
  };
  // Begins to work at once. `raw_origin`: what the timescale's raw counts from.
  KeeperClocks(const Deps& deps, std::string raw_origin);
  // Ends at once; what was collected in the last moments is lost.
  ~KeeperClocks();
  KeeperClocks(const KeeperClocks&) = delete;
  KeeperClocks& operator=(const KeeperClocks&) = delete;

 private:
  void Start();
  void Store(ClockEvidence batch);

  const Deps deps_;
  const std::string raw_origin_;
  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;
  std::unique_ptr<ClockCollector> collector_;  // made, used and destroyed on loop_'s sequence
  // The writer may call back when this is gone.
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  bool has_dropped_ = false;  // on loop_'s sequence
  std::thread thread_;
};

}  // namespace neurontrace
