// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "lib/trace/worker_stacks.h"
#include "neurontrace/v1/agent_gateway.pb.h"

// Converts stacks between messages and values, as lib/wire/conversions.h does for the rest. Pure
// functions, any thread. FromProto fails with INVALID_ARGUMENT, naming the field, if one is beyond
// its limit; texts become clean.
namespace neurontrace {

void ToProto(const StacksOrder& value, v1::CollectStacksOrder* message);
absl::StatusOr<StacksOrder> FromProto(const v1::CollectStacksOrder& message);

void ToProto(const WorkerStacks& value, v1::WorkerStacks* message);
absl::StatusOr<WorkerStacks> FromProto(const v1::WorkerStacks& message);

void ToProto(const KernelThread& value, v1::KernelThread* message);

}  // namespace neurontrace
