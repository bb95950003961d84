// SPDX-License-Identifier: Apache-2.0
#include "agent/upload/grpc_upload_stream.h"

#include <utility>

#include "neurontrace/v1/agent_gateway.grpc.pb.h"
#include "wire/bidi_call.h"

namespace neurontrace {
namespace {

class GrpcUploadStream final : public UploadStream {
 public:
  using Call = BidiCall<v1::ChunkEnvelope, v1::UploadAck>;

  GrpcUploadStream(v1::AgentGateway::Stub& stub, const std::string& agent_id, TaskRunner& runner,
                   Listener& listener)
      : call_(runner, MakeContext(agent_id),
              [&stub](grpc::ClientContext* context, Call::Reactor* reactor) {
                stub.async()->Upload(context, reactor);
              },
              {.on_message = [&listener](const v1::UploadAck& ack) { listener.OnAck(ack); },
               .on_written = [&listener] { listener.OnWritten(); },
               .on_closed = [&listener](const absl::Status& s) { listener.OnClosed(s); }}) {}

  void Write(std::shared_ptr<const v1::ChunkEnvelope> envelope) override {
    call_.Write(std::move(envelope));
  }

 private:
  static std::unique_ptr<grpc::ClientContext> MakeContext(const std::string& agent_id) {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata("neurontrace-agent-id", agent_id);
    return context;
  }

  Call call_;
};

}  // namespace

UploadConnector MakeGrpcUploadConnector(std::shared_ptr<grpc::Channel> channel,
                                        std::string agent_id, TaskRunner& runner) {
  std::shared_ptr<v1::AgentGateway::Stub> stub = v1::AgentGateway::NewStub(channel);
  return [stub = std::move(stub), agent_id = std::move(agent_id),
          &runner](UploadStream::Listener& listener) -> std::unique_ptr<UploadStream> {
    return std::make_unique<GrpcUploadStream>(*stub, agent_id, runner, listener);
  };
}

}  // namespace neurontrace
