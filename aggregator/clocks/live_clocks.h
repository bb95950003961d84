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
// Any thread.
// thread: live clocks: fits the models that express a moment on each host's clock
class LiveClocks {
 public:
  // How often models are fitted without a request.
  static constexpr uint64_t kRefreshNs = 10'000'000'000;
  // How much evidence is used: about 0.2 ms of work per host.
  static constexpr uint64_t kEvidenceNs = 20'000'000'000;

  // Both must outlive this.
  LiveClocks(const ClockEvidenceStore& evidence, const Clock& clock);
  ~LiveClocks();
  LiveClocks(const LiveClocks&) = delete;
  LiveClocks& operator=(const LiveClocks&) = delete;

  // Requests an additional fit; does not wait.
  void Refresh();
  // Fits all models before it returns; used by the thread and by tests.
  void RefreshNow();

  // Converts a moment of the reference to a host's raw; nullopt without recent evidence. The bound
  // grows with the distance from the evidence.
  std::optional<MomentOnHost> MomentOn(const HostBoot& host, uint64_t reference_ns) const;
  // Returns the bounds of a moment on all hosts with evidence, by instance; the narrower one if a
  // host was booted in between.
  std::map<std::string, uint64_t> BoundsAt(uint64_t reference_ns) const;

 private:
  using Models = std::map<HostBoot, ClockModel>;

  void RefreshAndAgain();
  static std::optional<MomentOnHost> MomentBy(const ClockModel& model, uint64_t reference_ns);
  std::shared_ptr<const Models> models() const;

  const ClockEvidenceStore& evidence_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::shared_ptr<const Models> models_ NT_GUARDED_BY(mutex_) = std::make_shared<Models>();
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
