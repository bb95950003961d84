// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/clocks/clock_steps.h"
#include "aggregator/retention/capture_retention.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/retention/retention_environment.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"

namespace neurontrace {

// What RetentionService needs from the aggregator around it.
class RetentionOwner {
 public:
  virtual ~RetentionOwner() = default;

  // Makes everybody else forget this ended capture; returns false if it is still in use. Called on
  // the thread of retention.
  virtual bool ReleaseForDeletion(const CaptureId& capture) = 0;
  // Receives every deletion, as RetentionEnvironment::OnExpired does. Called on the thread of
  // retention, and on the thread that destroys RetentionService.
  virtual void OnExpired(const Expired& expired) = 0;
  // Performs other work that waits for the disk. Called on the thread of retention once a second.
  virtual void RunDiskChores() = 0;
};

// Retention with its own thread, because deletions wait for the disk and the coordinator's sequence
// must not. Works from its construction until End.
// thread: retention: deletes what has expired, which waits for the disk
class RetentionService final : private RetentionEnvironment {
 public:
  // All of them must outlive this.
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    const Clock& clock;
    ClockService& clocks;
    ClockSteps& clock_steps;
    ExportLeases& leases;
    ChangedRetentions& changes;
    RetentionOwner& owner;
  };
  // Starts the thread; the first pass runs a second later.
  explicit RetentionService(const Deps& deps);
  // Calls End. What has expired since the last report is then reported on the destroying thread.
  ~RetentionService() override;
  RetentionService(const RetentionService&) = delete;
  RetentionService& operator=(const RetentionService&) = delete;

  // Ends the thread after the current step, for good.
  void End();

 private:
  // Implement RetentionEnvironment. All but OnExpired are called on loop_ only.
  uint64_t ForwardSince(uint64_t stamp_ns) const override {
    return clock_steps_.ForwardSince(stamp_ns);
  }
  uint64_t ReferenceNs() const override { return clocks_.ReferenceNs(); }
  // Returns the maps that an export of this moment would use.
  absl::StatusOr<ClockMaps> ReadClockMaps() override;
  bool ReleaseForDeletion(const CaptureId& capture) override {
    return owner_.ReleaseForDeletion(capture);
  }
  void PauseAfterStep(uint64_t step_ns) override;
  bool IsEnding() const override { return is_ending_; }
  void OnExpired(const Expired& expired) override { owner_.OnExpired(expired); }
  // Performs one pass of retention and of the owner's chores, and posts itself again.
  void RunAndReschedule();

  RetentionMetrics metrics_;
  const Clock& clock_;
  ClockService& clocks_;
  const ClockSteps& clock_steps_;
  RetentionOwner& owner_;
  // Read between steps, so that End does not wait for a whole pass.
  std::atomic<bool> is_ending_ = false;
  CaptureRetention retention_;  // used on loop_ only
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
