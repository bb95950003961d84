// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_control_stream.h"

#include <utility>

#include "base/status.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "trace/limits.h"
#include "wire/agent_hello.h"
#include "wire/bidi_call.h"
#include "wire/conversions.h"

namespace neurontrace {
namespace {

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

class GrpcControlStream final : public ControlStream {
 public:
  using Call = BidiCall<v1::AgentReport, v1::AgentOrder>;

  GrpcControlStream(v1::AgentGateway::Stub& stub, TaskRunner& runner, Listener& listener)
      : listener_(listener),
        call_(runner, std::make_unique<grpc::ClientContext>(),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Control(context, reactor);
              },
              {.on_message = [this](const v1::AgentOrder& order) { OnOrder(order); },
               .on_written = [&listener] { listener.OnWritten(); },
               .on_closed =
                   [this](const absl::Status& status) {
                     if (!closed_) listener_.OnClosed(status);
                   }}) {}

  void Send(const AgentReport& report) override {
    call_.Write(std::make_shared<v1::AgentReport>(ToMessage(report)));
  }

 private:
  void OnOrder(const v1::AgentOrder& order) {
    if (closed_) return;
    const absl::Status status = Tell(order);
    if (status.ok()) return;
    closed_ = true;
    // Nothing of this object may be touched behind this: the listener lets go of it.
    listener_.OnClosed(status);
  }

  absl::Status Tell(const v1::AgentOrder& order) {
    if (order.has_welcome()) {
      ASSIGN_OR_RETURN(const Welcome welcome, FromMessage(order.welcome()));
      listener_.OnWelcome(welcome);
    } else if (order.has_start_capture()) {
      ASSIGN_OR_RETURN(const CaptureResume resume, FromMessage(order.start_capture()));
      listener_.OnStartCapture(resume.capture_id, resume.spec);
    } else if (order.has_stop_capture()) {
      ASSIGN_OR_RETURN(const CaptureId id, CaptureId::FromBytes(order.stop_capture().capture_id()));
      listener_.OnStopCapture(id);
    }
    return absl::OkStatus();  // What a later version orders is passed over.
  }

  Listener& listener_;
  bool closed_ = false;  // by an order that makes no sense
  Call call_;
};

}  // namespace

ControlConnector MakeGrpcControlConnector(std::shared_ptr<grpc::Channel> channel,
                                          TaskRunner& runner) {
  std::shared_ptr<v1::AgentGateway::Stub> stub = v1::AgentGateway::NewStub(channel);
  return [stub = std::move(stub),
          &runner](ControlStream::Listener& listener) -> std::unique_ptr<ControlStream> {
    return std::make_unique<GrpcControlStream>(*stub, runner, listener);
  };
}

}  // namespace neurontrace
