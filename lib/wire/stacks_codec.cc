// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/stacks_codec.h"

#include <string>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"
#include "lib/trace/stacks_limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {
namespace {

std::string Name(const std::string& text) { return CleanText(text, limits::kStackNameBytesMax); }

absl::StatusOr<std::string> CheckStackName(const char* field, const std::string& text) {
  RETURN_IF_ERROR(CheckText(field, text, limits::kStackNameBytesMax));
  return Name(text);
}

absl::StatusOr<StackThread> FromProto(const v1::StackThread& message) {
  StackThread value;
  ASSIGN_OR_RETURN(value.name, CheckStackName("stacks.threads.name", message.name()));
  value.os_thread_id = message.os_thread_id();
  value.holds_gil = message.holds_gil();
  RETURN_IF_ERROR(
      CheckCount("stacks.threads.frames", message.frames_size(), limits::kStackFramesMax));
  for (const v1::StackFrame& frame : message.frames()) {
    StackFrame& added = value.frames.emplace_back();
    ASSIGN_OR_RETURN(added.function, CheckStackName("stacks.frames.function", frame.function()));
    ASSIGN_OR_RETURN(added.file, CheckStackName("stacks.frames.file", frame.file()));
    added.line = frame.line();
  }
  return value;
}

absl::StatusOr<KernelThread> FromProto(const v1::KernelThread& message) {
  KernelThread value;
  value.id = message.id();
  ASSIGN_OR_RETURN(value.name, CheckStackName("stacks.kernel_threads.name", message.name()));
  ASSIGN_OR_RETURN(value.state, CheckStackName("stacks.kernel_threads.state", message.state()));
  ASSIGN_OR_RETURN(value.wait_channel,
                   CheckStackName("stacks.kernel_threads.wait_channel", message.wait_channel()));
  value.system_call = message.system_call();
  return value;
}

}  // namespace

void ToProto(const StacksOrder& value, v1::CollectStacksOrder* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  message->set_collection(value.collection);
  for (const WorkerIdentity& worker : value.workers) ToProto(worker, message->add_workers());
}

absl::StatusOr<StacksOrder> FromProto(const v1::CollectStacksOrder& message) {
  StacksOrder value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  value.collection = message.collection();
  RETURN_IF_ERROR(CheckCount("collect_stacks.workers", message.workers_size(),
                             static_cast<int64_t>(limits::kStacksWorkersMax)));
  for (const v1::WorkerIdentity& worker : message.workers()) {
    ASSIGN_OR_RETURN(value.workers.emplace_back(), FromProto(worker));
  }
  return value;
}

void ToProto(const KernelThread& value, v1::KernelThread* message) {
  message->set_id(value.id);
  message->set_name(Name(value.name));
  message->set_state(Name(value.state));
  message->set_wait_channel(Name(value.wait_channel));
  message->set_system_call(value.system_call);
}

void ToProto(const WorkerStacks& value, v1::WorkerStacks* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  message->set_collection(value.collection);
  ToProto(value.worker, message->mutable_worker());
  message->set_outcome(static_cast<v1::StacksOutcome>(value.outcome));
  message->set_detail(CleanText(value.detail, limits::kDetailBytesMax));
  for (const StackThread& thread : value.threads) {
    v1::StackThread& added = *message->add_threads();
    added.set_name(Name(thread.name));
    added.set_os_thread_id(thread.os_thread_id);
    added.set_holds_gil(thread.holds_gil);
    for (const StackFrame& frame : thread.frames) {
      v1::StackFrame& to = *added.add_frames();
      to.set_function(Name(frame.function));
      to.set_file(Name(frame.file));
      to.set_line(frame.line);
    }
  }
  message->set_left_out(value.left_out);
  for (const KernelThread& thread : value.kernel_threads) {
    ToProto(thread, message->add_kernel_threads());
  }
  message->set_kernel_threads_left_out(value.kernel_threads_left_out);
}

absl::StatusOr<WorkerStacks> FromProto(const v1::WorkerStacks& message) {
  WorkerStacks value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  value.collection = message.collection();
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  RETURN_IF_ERROR(CheckEnum("stacks.outcome", message.outcome(), v1::STACKS_OUTCOME_TAKEN,
                            v1::STACKS_OUTCOME_NO_ANSWER));
  value.outcome = static_cast<StacksOutcome>(message.outcome());
  ASSIGN_OR_RETURN(value.detail, CheckDetail("stacks.detail", message.detail()));
  // Twice the agent's limit, which counts texts without their framing.
  if (message.ByteSizeLong() > 2 * limits::kStackBytesMax) {
    return InvalidArgument("stacks of worker {} have {} bytes", value.worker.pid,
                           message.ByteSizeLong());
  }
  RETURN_IF_ERROR(CheckCount("stacks.threads", message.threads_size(), limits::kStackThreadsMax));
  for (const v1::StackThread& thread : message.threads()) {
    ASSIGN_OR_RETURN(value.threads.emplace_back(), FromProto(thread));
  }
  value.left_out = message.left_out();
  RETURN_IF_ERROR(CheckCount("stacks.kernel_threads", message.kernel_threads_size(),
                             limits::kKernelThreadsMax));
  for (const v1::KernelThread& thread : message.kernel_threads()) {
    ASSIGN_OR_RETURN(value.kernel_threads.emplace_back(), FromProto(thread));
  }
  value.kernel_threads_left_out = message.kernel_threads_left_out();
  return value;
}

}  // namespace neurontrace
