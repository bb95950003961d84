// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/suspension_codec.h"

#include <string>

#include "lib/base/status.h"
#include "lib/trace/ids.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"

namespace neurontrace {

void ToProto(const Suspension& value, v1::Suspension* message) {
  if (!value.other.empty()) message->set_capture_id(std::string(value.other.bytes()));
  message->set_begin_ns(value.begin_ns);
  message->set_end_ns(value.end_ns);
}

absl::StatusOr<Suspension> FromProto(const v1::Suspension& message) {
  Suspension value{.begin_ns = message.begin_ns(), .end_ns = message.end_ns()};
  const std::string& id = message.capture_id();
  if (!id.empty() && id.size() != CaptureId::kBytes) {
    return InvalidArgument("suspension.capture_id has {} bytes; an id has {}", id.size(),
                           CaptureId::kBytes);
  }
  if (!id.empty()) {
    ASSIGN_OR_RETURN(value.other, CaptureId::FromBytes(id));
  }
  if (message.begin_ns() == 0) return InvalidArgument("suspension.begin_ns is 0");
  if (!value.is_valid()) {
    return InvalidArgument("suspension.begin_ns {} is later than end_ns {}", message.begin_ns(),
                           message.end_ns());
  }
  return value;
}

void AddSuspensions(const std::vector<Suspension>& values,
                    google::protobuf::RepeatedPtrField<v1::Suspension>* messages) {
  for (const Suspension& value : values) {
    if (messages->size() >= static_cast<int>(limits::kSuspensionsPerChunkMax)) return;
    if (value.is_valid()) ToProto(value, messages->Add());
  }
}

// Only workers are suspended; the times of a framework file may be of a clock of its own. A canary
// has no content, as the store keeps only the last one of a stream.
absl::StatusOr<std::vector<Suspension>> SuspensionsOf(const v1::ChunkHeader& header) {
  std::vector<Suspension> values;
  if (header.suspensions_size() == 0) return values;
  if (header.stream().kind() != v1::STREAM_KIND_NEURON_CORE) {
    return InvalidArgument("header.suspensions is set in a stream of kind {}; only workers have it",
                           static_cast<int>(header.stream().kind()));
  }
  if (header.canary_realtime_ns() != 0) {
    return InvalidArgument("header.suspensions is set in a canary");
  }
  RETURN_IF_ERROR(CheckCount("header.suspensions", header.suspensions_size(),
                             limits::kSuspensionsPerChunkMax));
  values.reserve(static_cast<size_t>(header.suspensions_size()));
  for (const v1::Suspension& message : header.suspensions()) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromProto(message));
  }
  return values;
}

}  // namespace neurontrace
