// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <string>
#include <string_view>

#include "base/clean_text.h"
#include "base/status.h"
#include "trace/event_filter.h"
#include "trace/limits.h"
#include "wire/conversions.h"
#include "wire/field_checks.h"

namespace neurontrace {
namespace {

template <typename Message>
using Repeated = google::protobuf::RepeatedPtrField<Message>;

// What a person asked for is not cut but refused, with a message.
std::string Whole(std::string_view text) {
  return CleanText(text, std::numeric_limits<size_t>::max());
}

void ToProto(const std::vector<KeyValue>& values, Repeated<v1::KeyValue>* messages) {
  for (const KeyValue& value : values) {
    v1::KeyValue* const message = messages->Add();
    message->set_key(Whole(value.key));
    message->set_value(Whole(value.value));
  }
}

absl::Status TakeSelection(const v1::CaptureSpec& message, CaptureSpec& value) {
  RETURN_IF_ERROR(
      CheckCount("spec.job_facts", message.job_facts_size(), limits::kSelectionItemsMax));
  for (const v1::KeyValue& fact : message.job_facts()) {
    ASSIGN_OR_RETURN(value.job_facts.emplace_back(), FromProto(fact));
  }
  RETURN_IF_ERROR(
      CheckCount("spec.worker_gids", message.worker_gids_size(), limits::kSelectionItemsMax));
  for (const v1::GidRange& range : message.worker_gids()) {
    if (range.first() < 0 || range.last() < range.first()) {
      return InvalidArgument("spec.worker_gids has the range {} to {}", range.first(),
                             range.last());
    }
    value.worker_gids.push_back({range.first(), range.last()});
  }
  RETURN_IF_ERROR(CheckCount("spec.labels", message.labels_size(), limits::kCaptureLabelsMax));
  for (const v1::KeyValue& label : message.labels()) {
    ASSIGN_OR_RETURN(value.labels.emplace_back(), FromProto(label));
  }
  value.all_events = message.all_events();
  if (message.require_percent() > 100) {
    return InvalidArgument("spec.require_percent is {}; it may be 0 to 100",
                           message.require_percent());
  }
  value.require_percent = message.require_percent();
  return absl::OkStatus();
}

absl::Status TakeEnd(const v1::CaptureSpec& message, CaptureSpec& value) {
  RETURN_IF_ERROR(
      CheckEnum("spec.mode", message.mode(), v1::CAPTURE_MODE_STREAM, v1::CAPTURE_MODE_PREVIEW));
  value.mode = static_cast<CaptureMode>(message.mode());
  value.at_next_execution = message.at_next_execution();
  value.at_execution = message.at_execution();
  value.executions = message.executions();
  if (value.mode != CaptureMode::kStream && value.by_execution()) {
    return InvalidArgument("only a capture from now on can begin and end with executions");
  }
  value.bytes_max = message.bytes_max();
  value.retention_ns = message.retention_ns();
  value.retention_bytes = message.retention_bytes();
  value.last_ns = message.last_ns();
  if (!message.flight_recorder().empty()) {
    ASSIGN_OR_RETURN(value.flight_recorder, CaptureId::FromBytes(message.flight_recorder()));
  }
  value.budget_core_ppm = message.budget_core_ppm();
  value.budget_bytes_per_second = message.budget_bytes_per_second();
  ASSIGN_OR_RETURN(value.cause, TakeDetail("spec.cause", message.cause()));
  return absl::OkStatus();
}

}  // namespace

void ToProto(const KeyValue& value, v1::KeyValue* message) {
  message->set_key(CleanText(value.key, limits::kIdentityStringBytesMax));
  message->set_value(CleanText(value.value, limits::kIdentityStringBytesMax));
}

absl::StatusOr<KeyValue> FromProto(const v1::KeyValue& message) {
  RETURN_IF_ERROR(CheckIdentityText("key", message.key()));
  RETURN_IF_ERROR(CheckIdentityText("value", message.value()));
  if (message.key().empty()) return InvalidArgument("a key is empty");
  return KeyValue{.key = message.key(), .value = message.value()};
}

void ToProto(const CaptureBegin& value, v1::CaptureBegin* message) {
  message->set_reference_ns(value.reference_ns);
  message->set_host_raw_ns(value.host_raw_ns);
  message->set_bound_ns(value.bound_ns);
  message->set_first_execution(value.first_execution);
  message->set_last_execution(value.last_execution);
}

absl::StatusOr<CaptureBegin> FromProto(const v1::CaptureBegin& message) {
  if (message.last_execution() != 0 && message.last_execution() < message.first_execution()) {
    return InvalidArgument("begin.last_execution {} lies before first_execution {}",
                           message.last_execution(), message.first_execution());
  }
  return CaptureBegin{.reference_ns = message.reference_ns(),
                      .host_raw_ns = message.host_raw_ns(),
                      .bound_ns = message.bound_ns(),
                      .first_execution = message.first_execution(),
                      .last_execution = message.last_execution()};
}

void ToProto(const CaptureSpec& value, v1::CaptureSpec* message) {
  message->set_name(Whole(value.name));
  message->set_job(Whole(value.job));
  for (const auto& id : value.instance_ids) message->add_instance_ids(Whole(id));
  for (const uint32_t core : value.neuron_cores) message->add_neuron_cores(core);
  for (const auto& type : value.event_types) message->add_event_types(Whole(type));
  message->set_duration_ns(value.duration_ns);
  message->set_ring_events_per_core(value.ring_events_per_core);
  message->set_include_neuron(value.include_neuron);
  message->set_include_framework(value.include_framework);
  message->set_mode(static_cast<v1::CaptureMode>(value.mode));
  ToProto(value.job_facts, message->mutable_job_facts());
  for (const GidRange& range : value.worker_gids) {
    v1::GidRange* const out = message->add_worker_gids();
    out->set_first(range.first);
    out->set_last(range.last);
  }
  message->set_all_events(value.all_events);
  ToProto(value.labels, message->mutable_labels());
  message->set_require_percent(value.require_percent);
  message->set_at_next_execution(value.at_next_execution);
  message->set_at_execution(value.at_execution);
  message->set_executions(value.executions);
  message->set_bytes_max(value.bytes_max);
  message->set_retention_ns(value.retention_ns);
  message->set_retention_bytes(value.retention_bytes);
  message->set_last_ns(value.last_ns);
  if (!value.flight_recorder.empty()) {
    message->set_flight_recorder(std::string(value.flight_recorder.bytes()));
  }
  message->set_budget_core_ppm(value.budget_core_ppm);
  message->set_budget_bytes_per_second(value.budget_bytes_per_second);
  message->set_cause(Whole(value.cause));
}

absl::StatusOr<CaptureSpec> FromProto(const v1::CaptureSpec& message) {
  RETURN_IF_ERROR(CheckIdentityText("spec.name", message.name()));
  RETURN_IF_ERROR(CheckIdentityText("spec.job", message.job()));
  RETURN_IF_ERROR(
      CheckCount("spec.instance_ids", message.instance_ids_size(), limits::kSelectionItemsMax));
  RETURN_IF_ERROR(
      CheckCount("spec.neuron_cores", message.neuron_cores_size(), limits::kCoresPerWorkerMax));
  RETURN_IF_ERROR(
      CheckCount("spec.event_types", message.event_types_size(), limits::kSelectionItemsMax));
  CaptureSpec value;
  value.name = message.name();
  value.job = message.job();
  for (const auto& id : message.instance_ids()) {
    RETURN_IF_ERROR(CheckIdentityText("spec.instance_ids", id));
    value.instance_ids.push_back(id);
  }
  for (const uint32_t core : message.neuron_cores()) {
    if (core >= limits::kCoresPerWorkerMax) {
      return InvalidArgument("spec.neuron_cores has core {}; the highest possible is {}", core,
                             limits::kCoresPerWorkerMax - 1);
    }
    value.neuron_cores.push_back(core);
  }
  value.event_types.assign(message.event_types().begin(), message.event_types().end());
  RETURN_IF_ERROR(EventFilter::Parse(value.event_types).status());
  const uint64_t ring = message.ring_events_per_core();
  if (ring != 0 && (ring < limits::kRingEventsPerCoreMin || ring > limits::kRingEventsPerCoreMax)) {
    return InvalidArgument("spec.ring_events_per_core is {}; it may be {} to {}", ring,
                           limits::kRingEventsPerCoreMin, limits::kRingEventsPerCoreMax);
  }
  value.duration_ns = message.duration_ns();
  value.ring_events_per_core = ring;
  value.include_neuron = message.include_neuron();
  value.include_framework = message.include_framework();
  RETURN_IF_ERROR(TakeSelection(message, value));
  RETURN_IF_ERROR(TakeEnd(message, value));
  if (!value.include_neuron && !value.include_framework) {
    return InvalidArgument(
        "the capture leaves out both the runtime's events and framework files: "
        "nothing is left to record");
  }
  return value;
}

}  // namespace neurontrace
