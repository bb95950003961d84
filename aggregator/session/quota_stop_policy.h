// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_session.h"
#include "aggregator/session/session_environment.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Decides when one capture has to stop because of a quota or its own limit. Time is passed in. On
// the coordinator's sequence.
class QuotaStopPolicy {
 public:
  // Starts with an unknown allowance, as after a restart of the aggregator: Check asks for it.
  QuotaStopPolicy() = default;
  // Starts with the allowance that the capture was admitted with.
  QuotaStopPolicy(CaptureAllowance allowance, const SessionTime& now);

  // Returns why the capture has to stop; empty if it may continue. Asks `quota` at most once in
  // limits::kQuotaCheckNs.
  std::string Check(const CaptureRecord& record, const AgentRegistry& registry, StorageQuota& quota,
                    const SessionTime& now);

 private:
  std::optional<CaptureAllowance> allowance_;
  uint64_t allowance_due_ns_ = 0;  // monotonic; when to compute it again
  uint64_t checked_ns_ = 0;        // monotonic
};

}  // namespace neurontrace
