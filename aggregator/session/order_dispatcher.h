// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "aggregator/session/agent_registry.h"
#include "aggregator/session/capture_order.h"
#include "aggregator/session/capture_session.h"
#include "aggregator/session/session_environment.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "lib/trace/agent_info.h"
#include "lib/trace/capture_begin.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Finds the record of a capture that is running or awaits late agents; nullptr for any other.
class CaptureLookup {
 public:
  virtual ~CaptureLookup() = default;
  virtual const CaptureRecord* Find(const CaptureId& capture) const = 0;
};

// Sends the orders of a capture to the connected agents that take part. An order for a moment is
// sent ahead, as a time of the host's own clock. If nothing is known about that clock, the order is
// held back and sent at the moment itself. Used on the coordinator's sequence only.
class OrderDispatcher {
 public:
  // All of them must outlive this.
  struct Deps {
    const Clock& clock;
    const AgentRegistry& registry;
    OrderSender& sender;
    const SessionClocks& clocks;
    const CaptureLookup& captures;
    TaskRunner* sequence;  // runs SendDue in time; null: the owner calls it often enough
  };
  explicit OrderDispatcher(const Deps& deps) : deps_(deps) {}
  OrderDispatcher(const OrderDispatcher&) = delete;
  OrderDispatcher& operator=(const OrderDispatcher&) = delete;

  // Sends an order that needs no moment.
  void SendToAll(const CaptureRecord& record, const CaptureOrder& order);
  // Sends the beginning in `record.begin`, which is `in_ns` from now.
  void SendBegin(const CaptureRecord& record, uint64_t in_ns);
  // Sends `record.begin` again after its executions were chosen.
  void SendExecutions(const CaptureRecord& record);
  // Sends the stop, which applies in `in_ns`; 0: at once, and orders held back for the capture are
  // dropped.
  void SendStop(const CaptureRecord& record, uint64_t in_ns);
  // Returns what a newly connected agent has to do in the capture.
  ResumedCapture ResumeFor(const CaptureSession& session, const AgentInfo& agent);
  // Sends the orders whose moment has come.
  void SendDue();

  // Returns how far, in ns, the clocks of the participating agents can be from the moment; 0 if
  // the clock of one is not known.
  uint64_t WidestBound(const CaptureRecord& record, const CaptureBegin& begin) const;

 private:
  // An order that is held back; its contents are made when it is sent.
  struct DelayedOrder {
    CaptureId capture_id;
    std::string agent_id;
    bool is_stop = false;
  };

  // Returns the beginning with its moment on the agent's clock, if that is known.
  CaptureBegin BeginFor(const AgentInfo& agent, const CaptureBegin& begin) const;
  void Delay(uint64_t in_ns, DelayedOrder order);

  const Deps deps_;
  std::multimap<uint64_t, DelayedOrder> delayed_;  // by the monotonic time at which it is due
};

}  // namespace neurontrace
