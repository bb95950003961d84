// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/framework_codec.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/clean_text.h"
#include "lib/trace/framework_limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {
namespace {

absl::StatusOr<FrameworkTrace> TraceOf(const v1::FrameworkTrace& message) {
  RETURN_IF_ERROR(CheckEnum("framework_trace.state", message.state(),
                            v1::FRAMEWORK_TRACE_STATE_WAITING, v1::FRAMEWORK_TRACE_STATE_FAILED));
  RETURN_IF_ERROR(CheckIdentityText("framework_trace.framework", message.framework()));
  FrameworkTrace value;
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.framework = message.framework();
  value.state = static_cast<FrameworkTraceState>(message.state());
  ASSIGN_OR_RETURN(value.detail, CheckDetail("framework_trace.detail", message.detail()));
  return value;
}

}  // namespace

// A request of a person is not cut: the receiver refuses what is too long.
void FrameworksToProto(const CaptureSpec& value, v1::CaptureSpec* message) {
  for (const std::string& name : value.filter.frameworks) {
    message->add_frameworks(CleanText(name, name.size()));
  }
  message->set_framework_first_step(value.filter.framework_first_step);
  message->set_framework_steps(value.filter.framework_steps);
  message->set_framework_stacks(value.filter.framework_stacks);
}

absl::Status FrameworksFromProto(const v1::CaptureSpec& message, CaptureSpec& value) {
  RETURN_IF_ERROR(
      CheckCount("spec.frameworks", message.frameworks_size(), limits::kFrameworksPerCaptureMax));
  for (const std::string& name : message.frameworks()) {
    RETURN_IF_ERROR(CheckIdentityText("spec.frameworks", name));
    value.filter.frameworks.push_back(name);
  }
  if (message.framework_steps() > limits::kFrameworkStepsMax) {
    return InvalidArgument("spec.framework_steps is {}; the limit is {}", message.framework_steps(),
                           limits::kFrameworkStepsMax);
  }
  value.filter.framework_first_step = message.framework_first_step();
  value.filter.framework_steps = message.framework_steps();
  value.filter.framework_stacks = message.framework_stacks();
  return absl::OkStatus();
}

void AddFrameworkTraces(const std::vector<FrameworkTrace>& traces,
                        v1::CaptureWorkerStatus* message) {
  const size_t count = std::min(traces.size(), limits::kFrameworkTracesMax);
  for (size_t i = 0; i < count; ++i) {
    v1::FrameworkTrace& trace = *message->add_framework_traces();
    ToProto(traces[i].worker, trace.mutable_worker());
    trace.set_framework(CleanText(traces[i].framework, limits::kIdentityStringBytesMax));
    trace.set_state(static_cast<v1::FrameworkTraceState>(traces[i].state));
    trace.set_detail(CleanText(traces[i].detail, limits::kDetailBytesMax));
  }
}

absl::StatusOr<std::vector<FrameworkTrace>> FrameworkTracesOf(
    const v1::CaptureWorkerStatus& message) {
  RETURN_IF_ERROR(CheckCount("capture_worker.framework_traces", message.framework_traces_size(),
                             limits::kFrameworkTracesMax));
  std::vector<FrameworkTrace> traces;
  traces.reserve(static_cast<size_t>(message.framework_traces_size()));
  for (const v1::FrameworkTrace& trace : message.framework_traces()) {
    ASSIGN_OR_RETURN(traces.emplace_back(), TraceOf(trace));
  }
  return traces;
}

}  // namespace neurontrace
