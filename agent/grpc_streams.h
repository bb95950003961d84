// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "agent/clock/evidence_stream.h"
#include "agent/clock/probe_stream.h"
#include "agent/control/control_stream.h"
#include "agent/upload/upload_stream.h"
#include "lib/base/task_runner.h"
#include "lib/clock/host_clocks.h"
#include "lib/trace/agent_info.h"

namespace neurontrace {

// Upload calls over `channel`, in the name of `agent_id`. `runner` outlives every stream made.
UploadConnector MakeGrpcUploadConnector(std::shared_ptr<grpc::Channel> channel,
                                        std::string agent_id, TaskRunner& runner);

// Control calls over `channel`; orders are checked before a session hears of them, and one that
// makes no sense ends the call. `runner` outlives every stream made.
ControlConnector MakeGrpcControlConnector(std::shared_ptr<grpc::Channel> channel,
                                          TaskRunner& runner);

// Calls of the ClockGateway over `channel`. Messages of the aggregator are checked before anybody
// hears of it, and what makes no sense ends the call. The others outlive every stream made; streams
// are made, used and destroyed on the sequence of `runner`.
EvidenceConnector MakeGrpcEvidenceConnector(std::shared_ptr<grpc::Channel> channel,
                                            const AgentInfo& info, TaskRunner& runner);
ProbeConnector MakeGrpcProbeConnector(std::shared_ptr<grpc::Channel> channel, TaskRunner& runner,
                                      const HostClocks& clocks);

}  // namespace neurontrace
