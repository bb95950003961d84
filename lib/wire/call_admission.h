// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"

namespace neurontrace {

// Limits how often agents may call. The services that agents dial ask it at the beginning of every
// call, on gRPC's threads; the aggregator's AccessControl answers. Any thread.
class CallAdmission {
 public:
  virtual ~CallAdmission() = default;
  // Fails with RESOURCE_EXHAUSTED if this address, as gRPC names it, calls too often; the message
  // describes when to try again.
  virtual absl::Status AdmitAgent(const std::string& peer) = 0;
};

}  // namespace neurontrace
