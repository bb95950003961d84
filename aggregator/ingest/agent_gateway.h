// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include "aggregator/ingest/control_call.h"
#include "aggregator/ingest/probe_call.h"
#include "aggregator/ingest/upload_call.h"
#include "base/clock.h"
#include "neurontrace/v1/agent_gateway.grpc.pb.h"

namespace neurontrace {

// The service that agents dial: each call is an object of its own. Everything given outlives the
// server that this is registered with.
class AgentGateway final : public v1::AgentGateway::CallbackService {
 public:
  AgentGateway(const ControlDeps& control, const UploadDeps& upload, const Clock& clock)
      : control_(control), upload_(upload), clock_(clock) {}

  grpc::ServerBidiReactor<v1::AgentReport, v1::AgentOrder>* Control(
      grpc::CallbackServerContext*) override {
    return ControlCall::Begin(control_);
  }
  grpc::ServerBidiReactor<v1::ChunkEnvelope, v1::UploadAck>* Upload(
      grpc::CallbackServerContext* context) override {
    return UploadCall::Begin(upload_, *context);
  }
  grpc::ServerBidiReactor<v1::ClockProbe, v1::ClockProbeReply>* Probe(
      grpc::CallbackServerContext*) override {
    return new ProbeCall(clock_);
  }

 private:
  const ControlDeps control_;
  const UploadDeps upload_;
  const Clock& clock_;
};

}  // namespace neurontrace
