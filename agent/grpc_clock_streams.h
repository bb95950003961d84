// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "agent/clock/evidence_stream.h"
#include "agent/clock/probe_stream.h"
#include "base/task_runner.h"
#include "clock/host_clocks.h"
#include "trace/agent_info.h"

namespace neurontrace {

// Calls of the ClockGateway over `channel`. What the aggregator says is checked before anybody
// hears of it, and what makes no sense ends the call. The others outlive every stream made; streams
// are made, used and destroyed on the sequence of `runner`.
EvidenceConnector MakeGrpcEvidenceConnector(std::shared_ptr<grpc::Channel> channel,
                                            const AgentInfo& info, TaskRunner& runner);
ProbeConnector MakeGrpcProbeConnector(std::shared_ptr<grpc::Channel> channel, TaskRunner& runner,
                                      const HostClocks& clocks);

}  // namespace neurontrace
