// SPDX-License-Identifier: Apache-2.0
#include "agent/control_messages.h"

#include <string>
#include <utility>
#include <variant>

#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/stream_cursor.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"
#include "lib/wire/stacks_codec.h"
#include "lib/wire/trigger_messages.h"

namespace neurontrace {
namespace {

// Decodes the part that orders and welcomes share; a welcome adds cursors and `stopping`. Fails
// with INVALID_ARGUMENT for an invalid id, specification or begin.
absl::StatusOr<CaptureResume> FromMessage(const v1::StartCaptureOrder& order) {
  CaptureResume resume;
  ASSIGN_OR_RETURN(resume.capture_id, CaptureId::FromBytes(order.capture_id()));
  ASSIGN_OR_RETURN(resume.spec, FromProto(order.spec()));
  resume.arm = order.arm();
  if (order.has_begin()) {
    ASSIGN_OR_RETURN(resume.begin, FromProto(order.begin()));
  }
  return resume;
}

// Every part is checked before the welcome has any effect: half a list of captures would end the
// others.
absl::StatusOr<Welcome> FromMessage(const v1::Welcome& message) {
  Welcome welcome;
  RETURN_IF_ERROR(CheckIdentityText("welcome.aggregator_id", message.aggregator_id()));
  RETURN_IF_ERROR(CheckIdentityText("welcome.aggregator_version", message.aggregator_version()));
  welcome.aggregator_id = message.aggregator_id();
  welcome.aggregator_version = message.aggregator_version();
  // Captures that are not listed are over, so the list must be complete or refused.
  for (const v1::CaptureResume& capture : message.captures()) {
    ASSIGN_OR_RETURN(CaptureResume resume, FromMessage(capture.start()));
    resume.stopping = capture.stopping();
    for (const v1::StreamCursor& cursor : capture.cursors()) {
      ASSIGN_OR_RETURN(resume.cursors.emplace_back(), FromProto(cursor));
    }
    welcome.captures.push_back(std::move(resume));
  }
  return welcome;
}

// The count is checked before anything is decoded, so that a message cannot make the agent allocate
// more than the limit allows.
absl::StatusOr<std::vector<TriggerRule>> FromMessage(const v1::SetTriggersOrder& order) {
  if (order.rules_size() > static_cast<int>(limits::kTriggerRulesMax)) {
    return InvalidArgument("{} trigger rules; the limit is {}", order.rules_size(),
                           limits::kTriggerRulesMax);
  }
  std::vector<TriggerRule> rules;
  for (const v1::TriggerRule& rule : order.rules()) {
    ASSIGN_OR_RETURN(rules.emplace_back(), FromProto(rule));
  }
  return rules;
}

}  // namespace

v1::AgentReport ToMessage(const AgentReport& report) {
  // One overload for each alternative of AgentReport; a new one does not compile without its
  // encoding.
  struct Visitor {
    v1::AgentReport& message;
    void operator()(const AgentInfo& info) const { ToProto(info, message.mutable_hello()); }
    void operator()(const WorkerInfo& worker) const { ToProto(worker, message.mutable_worker()); }
    void operator()(const WorkerGone& gone) const {
      ToProto(gone.worker, message.mutable_worker_gone());
    }
    void operator()(const CaptureWorkerStatus& status) const {
      ToProto(status, message.mutable_capture_worker());
    }
    void operator()(const CaptureAgentStatus& status) const {
      v1::CaptureAgentStatus& agent = *message.mutable_capture_agent();
      agent.set_capture_id(std::string(status.capture_id.bytes()));
      agent.set_matched_workers(status.matched_workers);
      agent.set_finished(status.finished);
    }
    void operator()(const Heartbeat& heartbeat) const {
      message.mutable_heartbeat()->set_host_realtime_ns(heartbeat.host_realtime_ns);
    }
    void operator()(const TriggerFired& fired) const {
      ToProto(fired, message.mutable_trigger_fired());
    }
    void operator()(const WorkerStacks& stacks) const {
      ToProto(stacks, message.mutable_worker_stacks());
    }
  };
  v1::AgentReport message;
  std::visit(Visitor{message}, report);
  return message;
}

absl::Status DispatchOrder(const v1::AgentOrder& order, ControlStream::Listener& listener) {
  // The message is a oneof, so at most one branch applies.
  if (order.has_welcome()) {
    ASSIGN_OR_RETURN(const Welcome welcome, FromMessage(order.welcome()));
    listener.OnWelcome(welcome);
  } else if (order.has_start_capture()) {
    ASSIGN_OR_RETURN(const CaptureResume resume, FromMessage(order.start_capture()));
    listener.OnStartCapture(resume);
  } else if (order.has_begin_capture()) {
    ASSIGN_OR_RETURN(const CaptureId id, CaptureId::FromBytes(order.begin_capture().capture_id()));
    ASSIGN_OR_RETURN(const CaptureBegin begin, FromProto(order.begin_capture().begin()));
    listener.OnBeginCapture(id, begin);
  } else if (order.has_stop_capture()) {
    ASSIGN_OR_RETURN(const CaptureId id, CaptureId::FromBytes(order.stop_capture().capture_id()));
    listener.OnStopCapture(id, order.stop_capture().host_raw_ns());
  } else if (order.has_set_triggers()) {
    ASSIGN_OR_RETURN(const std::vector<TriggerRule> rules, FromMessage(order.set_triggers()));
    listener.OnSetTriggers(rules, order.set_triggers().version());
  } else if (order.has_collect_stacks()) {
    ASSIGN_OR_RETURN(const StacksOrder stacks, FromProto(order.collect_stacks()));
    listener.OnCollectStacks(stacks);
  }
  return absl::OkStatus();  // What a later version orders is passed over.
}

}  // namespace neurontrace
