// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/loss_table.h"

#include <algorithm>
#include <iterator>

#include "lib/trace/expiry.h"

namespace neurontrace {

void LossTable::Add(LossPlace place, LossReason reason, uint64_t events) {
  // Values of a later version are read from the wire and from stores unchanged; they count as
  // unspecified.
  const auto p = static_cast<size_t>(place);
  const auto r = static_cast<size_t>(reason);
  uint64_t& sum = events_[p < kPlaces ? p : 0][r < kReasons ? r : 0];
  sum = sum > UINT64_MAX - events ? UINT64_MAX : sum + events;
}

void LossTable::Add(const LossTable& other) {
  other.ForEach(LossPlace::kUnspecified, [this](LossPlace place, LossReason reason,
                                                uint64_t events) { Add(place, reason, events); });
}

// Expired events were deleted on purpose and are not counted. A sum that has not grown adds
// nothing.
void LossTable::AddGrowth(const std::vector<Loss>& before, const std::vector<Loss>& after) {
  for (const Loss& now : after) {
    if (IsExpiry(now)) continue;
    const auto known = std::find_if(before.begin(), before.end(), [&](const Loss& loss) {
      return loss.place == now.place && loss.reason == now.reason;
    });
    const uint64_t was = known == before.end() ? 0 : known->events;
    if (now.events > was) Add(now.place, now.reason, now.events - was);
  }
}

uint64_t LossTable::events(LossPlace place, LossReason reason) const {
  return events_.at(static_cast<size_t>(place)).at(static_cast<size_t>(reason));
}

bool LossTable::IsExpectedLoss(LossPlace place, LossReason reason) {
  return std::find(std::begin(kExpectedLosses), std::end(kExpectedLosses),
                   std::pair(place, reason)) != std::end(kExpectedLosses);
}

}  // namespace neurontrace
