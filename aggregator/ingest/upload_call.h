// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "aggregator/ingest/upload_exchange.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// One Upload call of gRPC: carries what an UploadExchange says. Deletes itself when gRPC says
// OnDone.
class UploadCall final : public grpc::ServerBidiReactor<v1::ChunkEnvelope, v1::UploadAck> {
 public:
  static UploadCall* Begin(const UploadDeps& deps, const grpc::CallbackServerContext& context);

  void OnReadDone(bool ok) override { exchange_->OnReadDone(ok); }
  void OnWriteDone(bool ok) override { exchange_->OnWriteDone(ok); }
  void OnCancel() override { exchange_->OnCancel(); }
  void OnDone() override;

 private:
  UploadCall(const UploadDeps& deps, std::string agent_id);

  const std::shared_ptr<UploadExchange> exchange_;
};

}  // namespace neurontrace
