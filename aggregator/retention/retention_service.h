// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <functional>
#include <thread>

#include "aggregator/clocks/clock_service.h"
#include "aggregator/clocks/clock_steps.h"
#include "aggregator/retention/capture_retention.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"

namespace neurontrace {

// Retention with its thread: deletions wait for the disk, which the coordinator's sequence must
// not. Begins to work when it is built, and ends within one step when it is destroyed.
// thread: retention: deletes what has expired, which waits for the disk
class RetentionService {
 public:
  struct Deps {
    Store& store;
    prometheus::Registry& registry;
    const Clock& clock;
    ClockService& clocks;
    ClockSteps& clock_steps;
    // As in CaptureRetention::Deps; called on this thread.
    std::function<bool(const CaptureId&)> let_go;
    // What else waits for the disk; called on this thread every second.
    std::function<void()> chores;
    // As in CaptureRetention::Deps; called on this thread, or by who destroys it.
    std::function<void(const Expired&)> on_expired;
  };
  explicit RetentionService(const Deps& deps);
  ~RetentionService();
  RetentionService(const RetentionService&) = delete;
  RetentionService& operator=(const RetentionService&) = delete;

  // To be taken by who exports a capture. Any thread.
  ExportLeases& leases() { return leases_; }

 private:
  void RunAndAgain();

  ExportLeases leases_;
  RetentionMetrics metrics_;
  const std::function<void()> chores_;
  std::atomic<bool> is_ending_ = false;
  CaptureRetention retention_;  // used on loop_ only
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
