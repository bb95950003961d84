// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_violation.h"

namespace neurontrace {

std::optional<CausalViolation> ViolationOf(const CausalInstances& instances,
                                           const CausalInstances::Entry& entry,
                                           const CausalCorrections& corrections) {
  const auto corrected = [&corrections](const CausalStamp& stamp) {
    return static_cast<int64_t>(corrections.Corrected(stamp.clock, stamp.reference_ns));
  };
  // The latest cause, and the latest on another clock than that one.
  const CausalStamp* latest = nullptr;
  const CausalStamp* other = nullptr;
  int64_t latest_ns = 0;
  int64_t other_ns = 0;
  for (const CausalStamp& stamp : instances.Causes(entry)) {
    const int64_t time = corrected(stamp);
    if (latest == nullptr || time > latest_ns) {
      if (latest != nullptr && latest->clock != stamp.clock) {
        other = latest;
        other_ns = latest_ns;
      }
      latest = &stamp;
      latest_ns = time;
    } else if (stamp.clock != latest->clock && (other == nullptr || time > other_ns)) {
      other = &stamp;
      other_ns = time;
    }
  }
  std::optional<CausalViolation> worst;
  for (const CausalStamp& stamp : instances.Effects(entry)) {
    const bool own = latest->clock == stamp.clock;
    if (own && other == nullptr) continue;
    const int64_t amount = (own ? other_ns : latest_ns) - corrected(stamp);
    if (amount <= 0 || (worst && amount <= worst->amount_ns)) continue;
    worst = CausalViolation{own ? *other : *latest, stamp, amount};
  }
  return worst;
}

}  // namespace neurontrace
