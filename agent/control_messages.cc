// SPDX-License-Identifier: Apache-2.0
#include "agent/control_messages.h"

#include <string>
#include <utility>
#include <variant>

#include "base/status.h"
#include "trace/limits.h"
#include "trace/stream_cursor.h"
#include "wire/agent_hello.h"
#include "wire/conversions.h"

namespace neurontrace {
namespace {

absl::StatusOr<CaptureResume> FromMessage(const v1::StartCaptureOrder& order) {
  CaptureResume resume;
  ASSIGN_OR_RETURN(resume.capture_id, CaptureId::FromBytes(order.capture_id()));
  ASSIGN_OR_RETURN(resume.spec, FromProto(order.spec()));
  return resume;
}

absl::StatusOr<Welcome> FromMessage(const v1::Welcome& message) {
  Welcome welcome;
  welcome.protocol_version = message.protocol_version();
  welcome.aggregator_id = message.aggregator_id().substr(0, limits::kIdentityStringBytesMax);
  welcome.aggregator_version =
      message.aggregator_version().substr(0, limits::kIdentityStringBytesMax);
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

}  // namespace

v1::AgentReport ToMessage(const AgentReport& report) {
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
  };
  v1::AgentReport message;
  std::visit(Visitor{message}, report);
  return message;
}

absl::Status TellOrder(const v1::AgentOrder& order, ControlStream::Listener& listener) {
  if (order.has_welcome()) {
    ASSIGN_OR_RETURN(const Welcome welcome, FromMessage(order.welcome()));
    listener.OnWelcome(welcome);
  } else if (order.has_start_capture()) {
    ASSIGN_OR_RETURN(const CaptureResume resume, FromMessage(order.start_capture()));
    listener.OnStartCapture(resume.capture_id, resume.spec);
  } else if (order.has_stop_capture()) {
    ASSIGN_OR_RETURN(const CaptureId id, CaptureId::FromBytes(order.stop_capture().capture_id()));
    listener.OnStopCapture(id);
  }
  return absl::OkStatus();  // What a later version orders is passed over.
}

}  // namespace neurontrace
