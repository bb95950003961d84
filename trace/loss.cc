// SPDX-License-Identifier: Apache-2.0
#include "trace/loss.h"

namespace neurontrace {

std::string_view ToString(LossPlace place) {
  switch (place) {
    case LossPlace::kUnspecified:
      return "unspecified";
    case LossPlace::kRuntimeRing:
      return "runtime ring";
    case LossPlace::kTapBuffer:
      return "tap buffer";
    case LossPlace::kDecode:
      return "decode";
    case LossPlace::kAgentQueue:
      return "agent queue";
    case LossPlace::kSpool:
      return "spool";
    case LossPlace::kWireRefusal:
      return "wire refusal";
    case LossPlace::kStore:
      return "store";
    case LossPlace::kRetention:
      return "retention";
  }
  return "unspecified";
}

std::string_view ToString(LossReason reason) {
  switch (reason) {
    case LossReason::kUnknown:
      return "unknown";
    case LossReason::kOverwritten:
      return "overwritten";
    case LossReason::kFull:
      return "full";
    case LossReason::kMalformed:
      return "malformed";
    case LossReason::kLimit:
      return "limit";
    case LossReason::kRefused:
      return "refused";
    case LossReason::kExpired:
      return "expired";
  }
  return "unknown";
}

}  // namespace neurontrace
