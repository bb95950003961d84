// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "aggregator/ingest/bidi_exchange.h"
#include "aggregator/ingest/control_exchange.h"
#include "aggregator/ingest/refused_call.h"
#include "aggregator/ingest/upload_exchange.h"
#include "lib/wire/call_admission.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// The gRPC service that agents dial; each call is an object of its own. gRPC calls it on its
// threads. Everything passed in must outlive the server that this is registered with.
class AgentGateway final : public v1::AgentGateway::CallbackService {
 public:
  // `admission` may be null: every call is served. It is asked before a call becomes an object that
  // counts against any limit.
  AgentGateway(const ControlDeps& control, const UploadDeps& upload, CallAdmission* admission)
      : control_(control), upload_(upload), admission_(admission) {}

  // Carries an agent's reports and the coordinator's orders for as long as the agent is connected.
  // A call that the admission refuses gets its status and is never served.
  grpc::ServerBidiReactor<v1::AgentReport, v1::AgentOrder>* Control(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(admission_, *context);
    if (!admitted.ok()) return new RefusedCall<v1::AgentReport, v1::AgentOrder>(admitted);
    return ExchangeCall<ControlExchange>::Begin(control_);
  }
  // Receives chunks and answers each once it is durable or refused. The agent's id is in the
  // metadata.
  grpc::ServerBidiReactor<v1::ChunkEnvelope, v1::UploadAck>* Upload(
      grpc::CallbackServerContext* context) override {
    const absl::Status admitted = Admitted(admission_, *context);
    if (!admitted.ok()) return new RefusedCall<v1::ChunkEnvelope, v1::UploadAck>(admitted);
    return ExchangeCall<UploadExchange>::Begin(upload_, AgentIdOf(*context));
  }

 private:
  // Returns the agent's id from the metadata; empty if there is none. The value comes from the
  // network and is checked when the exchange begins; here it is only copied out of gRPC's buffers,
  // which do not outlive the call.
  static std::string AgentIdOf(const grpc::CallbackServerContext& context) {
    const auto it = context.client_metadata().find(kAgentIdKey);
    if (it == context.client_metadata().end()) return "";
    return std::string(it->second.data(), it->second.size());
  }

  const ControlDeps control_;
  const UploadDeps upload_;
  CallAdmission* const admission_;
};

}  // namespace neurontrace
