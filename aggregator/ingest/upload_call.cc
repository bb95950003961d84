// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/upload_call.h"

#include <string>
#include <utility>

namespace neurontrace {
namespace {

std::string AgentIdOf(const grpc::CallbackServerContext& context) {
  const auto it = context.client_metadata().find(kAgentIdKey);
  if (it == context.client_metadata().end()) return "";
  return std::string(it->second.data(), it->second.size());
}

}  // namespace

UploadCall* UploadCall::Begin(const UploadDeps& deps, const grpc::CallbackServerContext& context) {
  auto* const call = new UploadCall(deps, AgentIdOf(context));
  call->exchange_->Begin();
  return call;
}

UploadCall::UploadCall(const UploadDeps& deps, std::string agent_id)
    : exchange_(std::make_shared<UploadExchange>(
          deps, std::move(agent_id),
          UploadExchange::Transport{
              .read = [this](v1::ChunkEnvelope* envelope) { StartRead(envelope); },
              .write = [this](const v1::UploadAck* ack) { StartWrite(ack); },
              .finish = [this](const grpc::Status& status) { Finish(status); }})) {}

void UploadCall::OnDone() {
  exchange_->OnDone();
  delete this;
}

}  // namespace neurontrace
