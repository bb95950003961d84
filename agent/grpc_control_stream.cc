// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_control_stream.h"

#include <utility>

#include "agent/control_messages.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "wire/bidi_call.h"

namespace neurontrace {
namespace {

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
    const absl::Status status = TellOrder(order, listener_);
    if (status.ok()) return;
    closed_ = true;
    // Nothing of this object may be touched behind this: the listener lets go of it.
    listener_.OnClosed(status);
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
