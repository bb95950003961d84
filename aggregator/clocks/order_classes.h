// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "aggregator/align/device/device_evidence_reader.h"

namespace neurontrace {

// Which joint operations of several instances are checked for their order. A disabled class costs
// nothing. A plain value. Comes from the option --order-checks (docs/operator/clocks.md). It is
// part of the record of a fit, so that a change leads to a new version of the clocks.
struct OrderClasses {
  bool collectives = true;  // cc_running
  bool barriers = true;     // enc_barrier

  // Requires a type that is one of the two.
  bool Has(DeviceEventType type) const {
    return type == DeviceEventType::kBarrier ? barriers : collectives;
  }
  bool any() const { return collectives || barriers; }
};

}  // namespace neurontrace
