// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "aggregator/session/session_environment.h"
#include "lib/base/clock.h"

namespace neurontrace {

// For tests: clocks of an aggregator that knows CLOCK_REALTIME and no host's clock.
class UnalignedClocks : public SessionClocks {
 public:
  explicit UnalignedClocks(const Clock& clock) : clock_(clock) {}

  uint64_t ReferenceNs() const override { return clock_.RealtimeNs(); }
  std::optional<MomentOnHost> MomentOn(const AgentInfo&, uint64_t) const override {
    return std::nullopt;
  }
  void RefreshSoon() override {}

 private:
  const Clock& clock_;
};

// For tests: a store that has room for everything and nothing stored.
class UnlimitedQuota : public StorageQuota {
 public:
  absl::StatusOr<CaptureAllowance> Admit(const CaptureSpec&, const std::set<std::string>&,
                                         std::optional<uint64_t>) override {
    return CaptureAllowance();
  }
  uint64_t StoredBytes(const CaptureId&) const override { return 0; }
  bool HasRoom() const override { return true; }
};

}  // namespace neurontrace
