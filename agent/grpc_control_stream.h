// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "agent/control/control_stream.h"
#include "base/task_runner.h"

namespace neurontrace {

// Control calls over `channel`; orders are checked before a session hears of them, and one that
// makes no sense ends the call. `runner` outlives every stream made.
ControlConnector MakeGrpcControlConnector(std::shared_ptr<grpc::Channel> channel,
                                          TaskRunner& runner);

}  // namespace neurontrace
