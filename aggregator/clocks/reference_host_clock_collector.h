// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "agent/clock/clock_collector.h"
#include "aggregator/ingest/clock_evidence_writer.h"
#include "aggregator/reference/reference_timescale.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/file_system.h"
#include "lib/base/random.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/clock_evidence.h"

namespace neurontrace {

// Collects the aggregator's own clock evidence: snapshots, events and UTC of the host that keeps
// the reference. Works as an agent does on its host and stores the evidence under ReferenceHost.
// It relates the reference to UTC; nothing else depends on it. Has a thread of its own, because
// nothing on it may wait.
// thread: own clocks: collects evidence about the clocks of the aggregator's host
class ReferenceHostClockCollector final : private ClockCollector::Listener {
 public:
  // Batches passed to the writer and not durable yet. Beyond this a new one is dropped and counted.
  static constexpr int kBatchesWaitingMax = 16;

  // All of them must outlive this. `metrics` counts the batches that are dropped.
  struct Deps {
    const ReferenceTimescale& timescale;
    ClockEvidenceWriter& writer;
    ClockMetrics& metrics;
    const Clock& clock;
  };
  // Starts at once. `raw_origin` identifies what the timescale's raw clock counts from.
  ReferenceHostClockCollector(const Deps& deps, std::string raw_origin);
  // Stops at once; what was collected in the last moments is lost.
  ~ReferenceHostClockCollector() override;
  ReferenceHostClockCollector(const ReferenceHostClockCollector&) = delete;
  ReferenceHostClockCollector& operator=(const ReferenceHostClockCollector&) = delete;

 private:
  // Starts the collector. Called on loop_'s sequence.
  void Start();
  // Implements ClockCollector::Listener: adds an exchange that relates raw to the reference, and
  // submits the batch. Called on loop_'s sequence; does not wait for the disk.
  void OnBatch(ClockEvidence batch) override;

  const Deps deps_;
  const std::string raw_origin_;
  // Runs until the destructor; everything of the collector happens on it.
  EventLoop loop_;
  SystemHostClocks host_clocks_;
  SystemFileSystem files_;
  SystemRandom random_;
  std::unique_ptr<ClockCollector> collector_;  // only used on loop_'s sequence
  // Shared, because the writer may call back when this no longer exists.
  const std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
  bool has_dropped_ = false;  // on loop_'s sequence
  std::thread thread_;
};

}  // namespace neurontrace
