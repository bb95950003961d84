// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/device/device_evidence_reader.h"

namespace neurontrace {

// Which joint operations of several instances are checked for their order. A disabled class costs
// nothing. A plain value.
struct OrderClasses {
  bool collectives = true;  // cc_running
  bool barriers = true;     // enc_barrier

  bool Has(DeviceEventType type) const {
    return type == DeviceEventType::kBarrier ? barriers : collectives;
  }
  bool any() const { return collectives || barriers; }
};

}  // namespace neurontrace
