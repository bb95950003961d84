// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <cstdint>

#include "aggregator/access/access_control.h"
#include "aggregator/aggregator_metrics.h"
#include "aggregator/clocks/clock_bound_metrics.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/clocks/clock_steps.h"
#include "aggregator/exports/export_service.h"
#include "aggregator/ingest/canary_ages.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/preview_reaper.h"
#include "aggregator/retention/retention_service.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/storage/storage.h"
#include "aggregator/triggers/trigger_service.h"
#include "aggregator/watch/live_insight.h"
#include "aggregator/web/page_service.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/daemon/daemon_process.h"
#include "lib/health/loop_watchdog.h"
#include "lib/wire/channel_security.h"

namespace neurontrace {

// Runs the aggregator's periodic work. On the coordinator's sequence: ticks, metrics and a watch
// over the machine's clock. On the thread of retention: deletions and everything else that waits
// for the disk. Works from its construction until End.
class Maintenance final : public RetentionOwner {
 public:
  // All of them must outlive this.
  struct Deps {
    TaskRunner& sequence;
    // Counts every tick, so that other threads notice a stuck sequence.
    LoopWatchdog& turns;  // of the sequence
    Coordinator& coordinator;
    TriggerService& triggers;
    LiveInsight& live_insight;
    // Their stalled calls are cancelled from the sequence.
    StreamingCallLimiter& watches;
    StreamingCallLimiter& views;
    ExportService& exports;
    AccessControl& access;
    PageService& page;
    Storage& storage;
    PreviewReaper& previews;
    ChangedRetentions& changed_retentions;
    // Ages of the last canaries, which the committer records.
    CanaryAges& canaries;
    ClockService& clocks;
    ClockSteps& clock_steps;
    // Publishes the metrics that all daemons have.
    DaemonProcess& process;
    // Files whose expiry times are exported.
    const ChannelSecurity& security;
    prometheus::Registry& registry;
    AggregatorMetrics& metrics;
    const Clock& clock;
  };
  // Starts ticks and retention at once, so everything in `deps` must be ready.
  explicit Maintenance(const Deps& deps);
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  // Ends the thread of retention while the sequence still runs, because retention asks the
  // sequence. Ticks continue as long as the sequence, which must have ended when this is destroyed.
  void End() { retention_.End(); }

 private:
  // Makes the coordinator forget an ended capture. Returns false if it is running, or if the
  // sequence does not answer within ten seconds. Like the other functions of RetentionOwner, called
  // on the thread of retention.
  bool ReleaseForDeletion(const CaptureId& capture) override;
  // Writes the deletion to the audit log.
  void OnExpired(const Expired& expired) override;
  // Checks the store's health, deletes expired previews, and refreshes what can only be learned
  // from the disk.
  void RunDiskChores() override;

  // Handles what is due and posts itself again, more often while a capture runs. Called on the
  // sequence, as are the next two.
  void Tick();
  // Warns every running capture of a step of the machine's clock.
  void CheckMachineClock();
  // Publishes figures that nobody updates as they change.
  void PublishMetrics();

  // Used on both threads; each part states which of its functions are safe on which.
  const Deps deps_;
  ClockBoundMetrics clock_bounds_;  // on the thread of retention
  // When PublishMetrics last ran.
  uint64_t published_monotonic_ns_ = 0;  // on the sequence
  // Owns the thread on which the functions of RetentionOwner are called.
  RetentionService retention_;  // last: its thread uses this object
};

}  // namespace neurontrace
