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

// Returns a function that starts Upload calls over `channel` with `agent_id` in the metadata. All
// callbacks of a stream are tasks on `runner`, which outlives every stream made; gRPC's own threads
// never reach a component.
UploadConnector MakeGrpcUploadConnector(std::shared_ptr<grpc::Channel> channel,
                                        std::string agent_id, TaskRunner& runner);

// Returns a function that starts Control calls over `channel`. Orders are checked by DispatchOrder
// before the session sees them; an invalid one closes the stream with that status. `runner`
// outlives every stream made.
ControlConnector MakeGrpcControlConnector(std::shared_ptr<grpc::Channel> channel,
                                          TaskRunner& runner);

// Return functions that start the calls of the ClockGateway over `channel`: Report, which carries
// evidence to the aggregator, and Ask, which carries probes where UDP is blocked. Messages of the
// aggregator are checked first, and an invalid one closes the stream. `runner` and `clocks` outlive
// every stream made; streams are made, used and destroyed on the sequence of `runner`.
EvidenceConnector MakeGrpcEvidenceConnector(std::shared_ptr<grpc::Channel> channel,
                                            const AgentInfo& info, TaskRunner& runner);
ProbeConnector MakeGrpcProbeConnector(std::shared_ptr<grpc::Channel> channel, TaskRunner& runner,
                                      const HostClocks& clocks);

}  // namespace neurontrace
