// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "aggregator/align/core/clock_model.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/store/clock_evidence_store.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// The current relation between each host's CLOCK_MONOTONIC_RAW and the reference, for orders that
// name a moment. Fitted from the newest evidence on a thread of its own, so that queries only read.
// Any thread. Used by ClockService for the orders of a session, and for metrics. The models use
// neither UTC nor device clocks, which orders do not need.
// thread: live clocks: fits the models that express a moment on each host's clock
class LiveClocks {
 public:
  // How often models are fitted without a request.
  static constexpr uint64_t kRefreshNs = 10'000'000'000;
  // How much evidence is used: about 0.2 ms of work per host.
  static constexpr uint64_t kEvidenceNs = 20'000'000'000;

  // Starts the thread, which fits at once and then every kRefreshNs. Both must outlive this.
  LiveClocks(const ClockEvidenceStore& evidence, const Clock& clock);
  // Waits for a fit that is running.
  ~LiveClocks();
  LiveClocks(const LiveClocks&) = delete;
  LiveClocks& operator=(const LiveClocks&) = delete;

  // Requests an additional fit; does not wait.
  void Refresh();
  // Fits all models before it returns; used by the thread and by tests. An error of the store is
  // logged, and the models stay as they were.
  void RefreshNow();

  // Converts a moment of the reference to a host's raw; nullopt without recent evidence. The bound
  // grows with the distance from the evidence. Never waits for a fit.
  std::optional<MomentOnHost> MomentOn(const HostBoot& host, uint64_t reference_ns) const;
  // Returns the bounds of a moment on all hosts with evidence, by instance; the narrower one if a
  // host was booted in between.
  std::map<std::string, uint64_t> BoundsAt(uint64_t reference_ns) const;

 private:
  // The keys are host and boot, without the reference's keeper.
  using Models = std::map<HostBoot, ClockModel>;

  // Called on loop_.
  void RefreshAndReschedule();
  // Returns nullopt if the bound is unknown. Requires a model with a segment.
  static std::optional<MomentOnHost> MomentBy(const ClockModel& model, uint64_t reference_ns);
  // Returns the newest models; they stay valid for the caller when they are replaced.
  std::shared_ptr<const Models> models() const;

  const ClockEvidenceStore& evidence_;
  const Clock& clock_;
  // Held only while the pointer is copied or replaced.
  mutable Mutex mutex_;
  std::shared_ptr<const Models> models_ NT_GUARDED_BY(mutex_) = std::make_shared<Models>();
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
