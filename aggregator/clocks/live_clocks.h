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

// How each host's CLOCK_MONOTONIC_RAW goes by the reference now, for who has to tell hosts of a
// moment: fitted out of the newest evidence on a thread of its own, so that asking costs nothing.
// Any thread.
// thread: live clocks: fits the models that express a moment on each host's clock
class LiveClocks {
 public:
  // Fitted again so often by itself.
  static constexpr uint64_t kRefreshNs = 10'000'000'000;
  // Out of the evidence of so long: 0.2 ms of work for each host.
  static constexpr uint64_t kEvidenceNs = 20'000'000'000;

  // Both outlive this.
  LiveClocks(const ClockEvidenceStore& evidence, const Clock& clock);
  ~LiveClocks();
  LiveClocks(const LiveClocks&) = delete;
  LiveClocks& operator=(const LiveClocks&) = delete;

  // Fits them soon, besides.
  void Refresh();
  // Fits them before it returns.
  void RefreshNow();

  // A moment of the reference on a host's raw; nothing where there is no evidence of the last
  // seconds.
  std::optional<MomentOnHost> MomentOn(const HostBoot& host, uint64_t reference_ns) const;
  // The bounds of a moment on all hosts of which there is evidence, by instance; of one that was
  // booted meanwhile the narrower.
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
