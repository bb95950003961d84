// SPDX-License-Identifier: Apache-2.0
#include "aggregator/ingest/control_call.h"

namespace neurontrace {

ControlCall* ControlCall::Begin(const ControlDeps& deps) {
  auto* const call = new ControlCall(deps);
  call->exchange_->Begin();
  return call;
}

ControlCall::ControlCall(const ControlDeps& deps)
    : exchange_(std::make_shared<ControlExchange>(
          deps, ControlExchange::Transport{
                    .read = [this](v1::AgentReport* report) { StartRead(report); },
                    .write = [this](const v1::AgentOrder* order) { StartWrite(order); },
                    .finish = [this](const grpc::Status& status) { Finish(status); }})) {}

void ControlCall::OnDone() {
  exchange_->OnDone();
  delete this;
}

}  // namespace neurontrace
