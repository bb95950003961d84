// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/trace/loss.h"

namespace neurontrace {

// Events that were stored and went because a capture's retention was over: a loss in the account,
// and none that makes a capture incomplete. Only the store books such; one that a producer reports
// is none (StreamRecord::Add).
constexpr bool IsExpiry(const Loss& loss) {
  return loss.place == LossPlace::kRetention && loss.reason == LossReason::kExpired;
}

}  // namespace neurontrace
