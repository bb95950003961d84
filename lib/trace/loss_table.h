// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/trace/loss.h"

namespace neurontrace {

// The places and reasons with which losses are recorded today. Others, of an older or a hostile
// producer, are counted all the same. A metric exists for each of these from the start, so that
// alerts see the first increase.
inline constexpr std::pair<LossPlace, LossReason> kExpectedLosses[] = {
    {LossPlace::kRuntimeRing, LossReason::kOverwritten},
    {LossPlace::kRuntimeRing, LossReason::kUnknown},
    {LossPlace::kTapBuffer, LossReason::kFull},
    {LossPlace::kTapBuffer, LossReason::kMalformed},
    {LossPlace::kTapBuffer, LossReason::kUnknown},
    {LossPlace::kDecode, LossReason::kMalformed},
    {LossPlace::kDecode, LossReason::kLimit},
    {LossPlace::kDecode, LossReason::kUnknown},
    {LossPlace::kDecode, LossReason::kNoTime},
    {LossPlace::kAgentQueue, LossReason::kFull},
    {LossPlace::kAgentQueue, LossReason::kUnknown},
    {LossPlace::kSpool, LossReason::kOverwritten},
    {LossPlace::kSpool, LossReason::kMalformed},
    {LossPlace::kSpool, LossReason::kUnknown},
    {LossPlace::kWireRefusal, LossReason::kRefused},
    {LossPlace::kStore, LossReason::kMalformed},
    {LossPlace::kStore, LossReason::kUnknown},
};

// Numbers of lost events by place and reason, from which metrics are made. Losses of an unknown
// number are not in it. A plain value.
class LossTable {
 public:
  void Add(LossPlace place, LossReason reason, uint64_t events);
  void Add(const Loss& loss) { Add(loss.place, loss.reason, loss.events); }
  void Add(const LossTable& other);
  // Adds the growth from `before` to `after`, both sums as AddLoss makes them, except for expired
  // events.
  void AddGrowth(const std::vector<Loss>& before, const std::vector<Loss>& after);

  // Returns the number of a place and reason of this version. Requires such values.
  uint64_t events(LossPlace place, LossReason reason) const;

  // Calls `visit(place, reason, events)` for each usual loss up to place `last`, including zeros,
  // and for any other loss that is not zero.
  template <typename Visit>
  void ForEach(LossPlace last, Visit visit) const {
    for (size_t p = 0; p < kPlaces; ++p) {
      for (size_t r = 0; r < kReasons; ++r) {
        const auto place = static_cast<LossPlace>(p);
        const auto reason = static_cast<LossReason>(r);
        if (events_[p][r] > 0 || (place <= last && IsExpectedLoss(place, reason))) {
          visit(place, reason, events_[p][r]);
        }
      }
    }
  }

 private:
  static constexpr size_t kPlaces = static_cast<size_t>(LossPlace::kRetention) + 1;
  static constexpr size_t kReasons = static_cast<size_t>(kLossReasonMax) + 1;
  // Returns whether the pair is one of kExpectedLosses.
  static bool IsExpectedLoss(LossPlace place, LossReason reason);

  std::array<std::array<uint64_t, kReasons>, kPlaces> events_ = {};
};

}  // namespace neurontrace
