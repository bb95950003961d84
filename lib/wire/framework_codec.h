// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/framework_trace.h"
#include "neurontrace/v1/agent_gateway.pb.h"
#include "neurontrace/v1/vocabulary.pb.h"

// Converts orders for framework traces on demand and their outcomes between messages and values, as
// lib/wire/conversions.h does for the rest. Pure functions, any thread.
namespace neurontrace {

// Writes what the capture asks of frameworks.
void FrameworksToProto(const CaptureSpec& value, v1::CaptureSpec* message);
// Takes what the capture asks of frameworks; names of a later version are for the agent to report.
// Fails with INVALID_ARGUMENT, naming the field, if a limit is exceeded.
absl::Status FrameworksFromProto(const v1::CaptureSpec& message, CaptureSpec& value);

// Appends outcomes, at most limits::kFrameworkTracesMax.
void AddFrameworkTraces(const std::vector<FrameworkTrace>& traces,
                        v1::CaptureWorkerStatus* message);
// Returns the outcomes of a status. Fails with INVALID_ARGUMENT, naming the field, if there are too
// many, or if one has an unknown state or a text that is too long.
absl::StatusOr<std::vector<FrameworkTrace>> FrameworkTracesOf(
    const v1::CaptureWorkerStatus& message);

}  // namespace neurontrace
