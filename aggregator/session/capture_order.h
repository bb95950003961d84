// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aggregator/session/agent_registry.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// Orders to an agent, with the fields of the messages of the same names in
// proto/neurontrace/v1/agent_gateway.proto. Plain values.
struct StartOrder {
  CaptureId capture_id;
  CaptureSpec spec;
  bool arm = false;                   // prepare, and begin only on a BeginOrder
  std::optional<CaptureBegin> begin;  // without `arm`: when to begin; nullopt: at once
};
struct BeginOrder {
  CaptureId capture_id;
  CaptureBegin begin;
};
struct StopOrder {
  CaptureId capture_id;
  uint64_t host_raw_ns = 0;  // on the host's CLOCK_MONOTONIC_RAW; 0: at once
};
using CaptureOrder = std::variant<StartOrder, BeginOrder, StopOrder>;

// A capture in which a newly connected agent takes part.
struct ResumedCapture {
  StartOrder start;
  bool stopping = false;
  std::vector<WorkerIdentity> workers;  // of this agent, those that have not finished
};

// Delivers orders to agents. Called on the coordinator's sequence; must not wait for the agent, nor
// call back into the coordinator.
class OrderSender {
 public:
  virtual ~OrderSender() = default;
  // Drops the order if the connection is gone: an agent that returns gets it again from Connect.
  virtual void SendOrder(const std::string& agent_id, ConnectionId connection,
                         const CaptureOrder& order) = 0;
};

}  // namespace neurontrace
