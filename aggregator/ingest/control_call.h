// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "aggregator/ingest/control_exchange.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// One Control call of gRPC: carries what a ControlExchange says. Deletes itself when gRPC says
// OnDone.
class ControlCall final : public grpc::ServerBidiReactor<v1::AgentReport, v1::AgentOrder> {
 public:
  static ControlCall* Begin(const ControlDeps& deps);

  void OnReadDone(bool ok) override { exchange_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { exchange_->OnWriteDone(ok); }
  void OnCancel() override { exchange_->OnCancel(); }
  void OnDone() override;

 private:
  explicit ControlCall(const ControlDeps& deps);

  const std::shared_ptr<ControlExchange> exchange_;
};

}  // namespace neurontrace
