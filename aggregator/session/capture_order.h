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

// What an agent is told to do: the fields of the messages of the same names. Plain values.
struct StartOrder {
  CaptureId capture_id;
  CaptureSpec spec;
  bool arm = false;                   // and to begin nothing before a BeginOrder
  std::optional<CaptureBegin> begin;  // without `arm`: when; nothing: at once
};
struct BeginOrder {
  CaptureId capture_id;
  CaptureBegin begin;
};
struct StopOrder {
  CaptureId capture_id;
  uint64_t host_raw_ns = 0;  // 0: at once
};
using CaptureOrder = std::variant<StartOrder, BeginOrder, StopOrder>;

// A capture in which an agent that has just connected takes part.
struct ResumedCapture {
  StartOrder start;
  bool stopping = false;
  std::vector<WorkerIdentity> workers;  // of this agent, those that have not finished in it
};

// Delivers orders to agents. Called on the coordinator's sequence; must not call back into it.
class OrderSender {
 public:
  virtual ~OrderSender() = default;
  // Drops the order if the connection is gone: an agent that returns is told again.
  virtual void SendOrder(const std::string& agent_id, ConnectionId connection,
                         const CaptureOrder& order) = 0;
};

}  // namespace neurontrace
