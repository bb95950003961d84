// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "agent/upload/upload_stream.h"
#include "base/task_runner.h"

namespace neurontrace {

// Upload calls over `channel`, in the name of `agent_id`. `runner` outlives every stream made.
UploadConnector MakeGrpcUploadConnector(std::shared_ptr<grpc::Channel> channel,
                                        std::string agent_id, TaskRunner& runner);

}  // namespace neurontrace
