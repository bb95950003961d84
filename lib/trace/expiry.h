// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/trace/loss.h"

namespace neurontrace {

// Returns whether a loss is of stored events that were deleted when a capture's retention was over.
// It is in the account, but does not make a capture incomplete. Only the store records such losses;
// one that a producer reports is ignored (StreamRecord::Add). Pure.
constexpr bool IsExpiry(const Loss& loss) {
  return loss.place == LossPlace::kRetention && loss.reason == LossReason::kExpired;
}

}  // namespace neurontrace
