// SPDX-License-Identifier: Apache-2.0
#include "wire/conversions.h"

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trace/event_filter.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

// The values of trace/ are those of the messages.
static_assert(static_cast<int>(StreamKind::kNeuronCore) == v1::STREAM_KIND_NEURON_CORE);
static_assert(static_cast<int>(StreamKind::kFramework) == v1::STREAM_KIND_FRAMEWORK);
static_assert(static_cast<int>(StreamKind::kHost) == v1::STREAM_KIND_HOST);
static_assert(static_cast<int>(RankSource::kCommunicator) == v1::RANK_SOURCE_COMMUNICATOR);
static_assert(static_cast<int>(RankSource::kFrameworkFile) == v1::RANK_SOURCE_FRAMEWORK_FILE);
static_assert(static_cast<int>(LossPlace::kRuntimeRing) == v1::LOSS_PLACE_RUNTIME_RING);
static_assert(static_cast<int>(LossPlace::kRetention) == v1::LOSS_PLACE_RETENTION);
static_assert(static_cast<int>(LossReason::kOverwritten) == v1::LOSS_REASON_OVERWRITTEN);
static_assert(static_cast<int>(LossReason::kExpired) == v1::LOSS_REASON_EXPIRED);
static_assert(static_cast<int>(WorkerState::kNotInitialised) == v1::WORKER_STATE_NOT_INITIALISED);
static_assert(static_cast<int>(WorkerState::kFailed) == v1::WORKER_STATE_FAILED);
static_assert(static_cast<int>(CaptureWorkerState::kStarting) == v1::CAPTURE_WORKER_STATE_STARTING);
static_assert(static_cast<int>(CaptureWorkerState::kLost) == v1::CAPTURE_WORKER_STATE_LOST);
static_assert(static_cast<int>(ClockDomain::kHostRealtime) == v1::CLOCK_DOMAIN_HOST_REALTIME);

// What a capture may ask for at most; beyond: refused.
constexpr int kSelectionItemsMax = 4'096;

absl::Status CheckText(std::string_view field, const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return absl::OkStatus();
  return InvalidArgument("{} has {} bytes; the limit is {}", field, text.size(), bytes_max);
}

absl::Status CheckIdentityText(std::string_view field, const std::string& text) {
  return CheckText(field, text, limits::kIdentityStringBytesMax);
}

absl::Status CheckDetail(std::string_view field, const std::string& text) {
  return CheckText(field, text, limits::kDetailBytesMax);
}

absl::Status CheckCount(std::string_view field, int count, int64_t most) {
  if (count <= most) return absl::OkStatus();
  return InvalidArgument("{} has {} entries; the limit is {}", field, count, most);
}

// A value that this version does not know, from a newer peer or a hostile one.
absl::Status CheckEnum(std::string_view field, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return InvalidArgument("{} has the unknown value {}", field, value);
}

template <typename Message, typename Value>
absl::Status FromProtoList(const google::protobuf::RepeatedPtrField<Message>& messages,
                           std::vector<Value>& values) {
  values.reserve(static_cast<size_t>(messages.size()));
  for (const Message& message : messages) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromProto(message));
  }
  return absl::OkStatus();
}

std::string Cut(const std::string& text) { return text.substr(0, limits::kDetailBytesMax); }

}  // namespace

void ToProto(const WorkerIdentity& value, v1::WorkerIdentity* message) {
  message->set_instance_id(value.instance_id);
  message->set_boot_id(value.boot_id);
  message->set_pid(value.pid);
  message->set_start_time_ticks(value.start_time_ticks);
  message->set_container_id(value.container_id);
}

void ToProto(const StreamIdentity& value, v1::StreamIdentity* message) {
  message->set_agent_id(value.agent_id);
  ToProto(value.worker, message->mutable_worker());
  message->set_kind(static_cast<v1::StreamKind>(value.kind));
  message->set_nc_idx(value.nc_idx);
  message->set_name(value.name);
}

void ToProto(const RankEvidence& value, v1::RankEvidence* message) {
  message->set_source(static_cast<v1::RankSource>(value.source));
  message->set_worker_gid(value.worker_gid);
  message->set_world_size(value.world_size);
  message->set_detail(Cut(value.detail));
}

void ToProto(const Loss& value, v1::Loss* message) {
  message->set_place(static_cast<v1::LossPlace>(value.place));
  message->set_reason(static_cast<v1::LossReason>(value.reason));
  message->set_events(value.events);
  message->set_events_unknown(value.events_unknown);
  message->set_first_timestamp_ns(value.first_timestamp_ns);
  message->set_last_timestamp_ns(value.last_timestamp_ns);
  message->set_detail(Cut(value.detail));
}

void ToProto(const CaptureSpec& value, v1::CaptureSpec* message) {
  message->set_name(value.name);
  message->set_job(value.job);
  for (const auto& id : value.instance_ids) message->add_instance_ids(id);
  for (const uint32_t core : value.neuron_cores) message->add_neuron_cores(core);
  for (const auto& type : value.event_types) message->add_event_types(type);
  message->set_duration_ns(value.duration_ns);
  message->set_ring_events_per_core(value.ring_events_per_core);
  message->set_include_neuron(value.include_neuron);
  message->set_include_framework(value.include_framework);
}

void ToProto(const WorkerInfo& value, v1::WorkerInventory* message) {
  ToProto(value.identity, message->mutable_identity());
  message->set_state(static_cast<v1::WorkerState>(value.state));
  message->set_detail(Cut(value.detail));
  message->set_command(value.command);
  message->set_job(value.job);
  for (const CoreInfo& core : value.cores) {
    v1::CoreInventory* out = message->add_cores();
    out->set_nc_idx(core.nc_idx);
    for (const RankEvidence& evidence : core.rank_evidence) {
      ToProto(evidence, out->add_rank_evidence());
    }
  }
  message->set_runtime_version(value.runtime_version);
  message->set_pid_claimed(value.pid_claimed);
  for (const auto& warning : value.warnings) message->add_warnings(Cut(warning));
}

void ToProto(const CaptureWorkerStatus& value, v1::CaptureWorkerStatus* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  ToProto(value.worker, message->mutable_worker());
  message->set_state(static_cast<v1::CaptureWorkerState>(value.state));
  message->set_detail(Cut(value.detail));
  message->set_events_read(value.events_read);
  message->set_events_stored(value.events_stored);
  message->set_events_lost(value.events_lost);
  message->set_framework(value.framework);
  message->set_streams(value.streams);
}

void ToProto(const StreamCursor& value, v1::StreamCursor* message) {
  ToProto(value.stream, message->mutable_stream());
  message->set_next_sequence(value.next_sequence);
  message->set_source_position(value.source_position);
  message->set_source_skip(value.source_skip);
  message->set_ended(value.ended);
}

void ToProto(const ChunkHeader& value, v1::ChunkHeader* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  ToProto(value.stream, message->mutable_stream());
  message->set_sequence(value.sequence);
  message->set_event_count(value.event_count);
  message->set_first_timestamp_ns(value.first_timestamp_ns);
  message->set_last_timestamp_ns(value.last_timestamp_ns);
  message->set_clock_domain(static_cast<v1::ClockDomain>(value.clock_domain));
  for (const RankEvidence& evidence : value.rank_evidence) {
    ToProto(evidence, message->add_rank_evidence());
  }
  for (const Loss& loss : value.losses) ToProto(loss, message->add_losses());
  message->set_producer_version(value.producer_version);
  message->set_source_position(value.source_position);
  message->set_source_skip(value.source_skip);
  message->set_end_of_stream(value.end_of_stream);
  message->set_columns_bytes(value.columns_bytes);
}

absl::StatusOr<WorkerIdentity> FromProto(const v1::WorkerIdentity& message) {
  RETURN_IF_ERROR(CheckIdentityText("worker.instance_id", message.instance_id()));
  RETURN_IF_ERROR(CheckIdentityText("worker.boot_id", message.boot_id()));
  RETURN_IF_ERROR(CheckIdentityText("worker.container_id", message.container_id()));
  if (message.instance_id().empty()) return InvalidArgument("worker.instance_id is empty");
  return WorkerIdentity{.instance_id = message.instance_id(),
                        .boot_id = message.boot_id(),
                        .pid = message.pid(),
                        .start_time_ticks = message.start_time_ticks(),
                        .container_id = message.container_id()};
}

absl::StatusOr<StreamIdentity> FromProto(const v1::StreamIdentity& message) {
  RETURN_IF_ERROR(CheckIdentityText("stream.agent_id", message.agent_id()));
  RETURN_IF_ERROR(CheckIdentityText("stream.name", message.name()));
  RETURN_IF_ERROR(
      CheckEnum("stream.kind", message.kind(), v1::STREAM_KIND_NEURON_CORE, v1::STREAM_KIND_HOST));
  if (message.nc_idx() >= limits::kCoresPerWorkerMax && message.nc_idx() != limits::kNoNcIdx) {
    return InvalidArgument("stream.nc_idx is {}; a worker has at most {} cores", message.nc_idx(),
                           limits::kCoresPerWorkerMax);
  }
  StreamIdentity value;
  value.agent_id = message.agent_id();
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.kind = static_cast<StreamKind>(message.kind());
  value.nc_idx = message.nc_idx();
  value.name = message.name();
  return value;
}

absl::StatusOr<RankEvidence> FromProto(const v1::RankEvidence& message) {
  RETURN_IF_ERROR(CheckEnum("rank_evidence.source", message.source(), v1::RANK_SOURCE_COMMUNICATOR,
                            v1::RANK_SOURCE_FRAMEWORK_FILE));
  RETURN_IF_ERROR(CheckDetail("rank_evidence.detail", message.detail()));
  if (message.worker_gid() < 0 || message.world_size() < 0) {
    return InvalidArgument("rank_evidence has a negative worker_gid or world_size: {} of {}",
                           message.worker_gid(), message.world_size());
  }
  return RankEvidence{.source = static_cast<RankSource>(message.source()),
                      .worker_gid = message.worker_gid(),
                      .world_size = message.world_size(),
                      .detail = message.detail()};
}

absl::StatusOr<Loss> FromProto(const v1::Loss& message) {
  RETURN_IF_ERROR(CheckEnum("loss.place", message.place(), v1::LOSS_PLACE_RUNTIME_RING,
                            v1::LOSS_PLACE_RETENTION));
  RETURN_IF_ERROR(
      CheckEnum("loss.reason", message.reason(), v1::LOSS_REASON_UNKNOWN, v1::LOSS_REASON_EXPIRED));
  RETURN_IF_ERROR(CheckDetail("loss.detail", message.detail()));
  return Loss{.place = static_cast<LossPlace>(message.place()),
              .reason = static_cast<LossReason>(message.reason()),
              .events = message.events(),
              .events_unknown = message.events_unknown(),
              .first_timestamp_ns = message.first_timestamp_ns(),
              .last_timestamp_ns = message.last_timestamp_ns(),
              .detail = message.detail()};
}

absl::StatusOr<CaptureSpec> FromProto(const v1::CaptureSpec& message) {
  RETURN_IF_ERROR(CheckIdentityText("spec.name", message.name()));
  RETURN_IF_ERROR(CheckIdentityText("spec.job", message.job()));
  RETURN_IF_ERROR(CheckCount("spec.instance_ids", message.instance_ids_size(), kSelectionItemsMax));
  RETURN_IF_ERROR(
      CheckCount("spec.neuron_cores", message.neuron_cores_size(), limits::kCoresPerWorkerMax));
  RETURN_IF_ERROR(CheckCount("spec.event_types", message.event_types_size(), kSelectionItemsMax));
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
  if (!value.include_neuron && !value.include_framework) {
    return InvalidArgument(
        "the capture leaves out both the runtime's events and framework files: "
        "nothing is left to record");
  }
  return value;
}

absl::StatusOr<WorkerInfo> FromProto(const v1::WorkerInventory& message) {
  RETURN_IF_ERROR(CheckEnum("worker.state", message.state(), v1::WORKER_STATE_NOT_INITIALISED,
                            v1::WORKER_STATE_FAILED));
  RETURN_IF_ERROR(CheckDetail("worker.detail", message.detail()));
  RETURN_IF_ERROR(CheckDetail("worker.command", message.command()));
  RETURN_IF_ERROR(CheckDetail("worker.job", message.job()));
  RETURN_IF_ERROR(CheckDetail("worker.runtime_version", message.runtime_version()));
  RETURN_IF_ERROR(CheckCount("worker.cores", message.cores_size(), limits::kCoresPerWorkerMax));
  RETURN_IF_ERROR(CheckCount("worker.warnings", message.warnings_size(), 64));
  WorkerInfo value;
  ASSIGN_OR_RETURN(value.identity, FromProto(message.identity()));
  value.state = static_cast<WorkerState>(message.state());
  value.detail = message.detail();
  value.command = message.command();
  value.job = message.job();
  for (const v1::CoreInventory& core : message.cores()) {
    CoreInfo& out = value.cores.emplace_back();
    out.nc_idx = core.nc_idx();
    RETURN_IF_ERROR(CheckCount("core.rank_evidence", core.rank_evidence_size(),
                               limits::kRankEvidencePerStreamMax));
    RETURN_IF_ERROR(FromProtoList(core.rank_evidence(), out.rank_evidence));
  }
  value.runtime_version = message.runtime_version();
  value.pid_claimed = message.pid_claimed();
  for (const auto& warning : message.warnings()) {
    RETURN_IF_ERROR(CheckDetail("worker.warnings", warning));
    value.warnings.push_back(warning);
  }
  return value;
}

absl::StatusOr<CaptureWorkerStatus> FromProto(const v1::CaptureWorkerStatus& message) {
  RETURN_IF_ERROR(CheckEnum("capture_worker.state", message.state(),
                            v1::CAPTURE_WORKER_STATE_STARTING, v1::CAPTURE_WORKER_STATE_LOST));
  RETURN_IF_ERROR(CheckDetail("capture_worker.detail", message.detail()));
  CaptureWorkerStatus value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.state = static_cast<CaptureWorkerState>(message.state());
  value.detail = message.detail();
  value.events_read = message.events_read();
  value.events_stored = message.events_stored();
  value.events_lost = message.events_lost();
  value.framework = message.framework();
  value.streams = message.streams();
  return value;
}

absl::StatusOr<StreamCursor> FromProto(const v1::StreamCursor& message) {
  StreamCursor value;
  ASSIGN_OR_RETURN(value.stream, FromProto(message.stream()));
  value.next_sequence = message.next_sequence();
  value.source_position = message.source_position();
  value.source_skip = message.source_skip();
  value.ended = message.ended();
  return value;
}

absl::StatusOr<ChunkHeader> FromProto(const v1::ChunkHeader& message) {
  RETURN_IF_ERROR(CheckEnum("header.clock_domain", message.clock_domain(),
                            v1::CLOCK_DOMAIN_HOST_REALTIME, v1::CLOCK_DOMAIN_HOST_REALTIME));
  RETURN_IF_ERROR(CheckCount("header.rank_evidence", message.rank_evidence_size(),
                             limits::kRankEvidencePerStreamMax));
  RETURN_IF_ERROR(CheckCount("header.losses", message.losses_size(), limits::kLossesPerChunkMax));
  RETURN_IF_ERROR(CheckIdentityText("header.producer_version", message.producer_version()));
  if (message.event_count() > limits::kChunkEventsMax) {
    return InvalidArgument("header.event_count is {}; the limit is {}", message.event_count(),
                           limits::kChunkEventsMax);
  }
  if (message.columns_bytes() > limits::kChunkColumnsBytesMax) {
    return InvalidArgument("header.columns_bytes is {}; the limit is {}", message.columns_bytes(),
                           limits::kChunkColumnsBytesMax);
  }
  if (message.first_timestamp_ns() > message.last_timestamp_ns()) {
    return InvalidArgument("header.first_timestamp_ns {} lies after last_timestamp_ns {}",
                           message.first_timestamp_ns(), message.last_timestamp_ns());
  }
  ChunkHeader value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  ASSIGN_OR_RETURN(value.stream, FromProto(message.stream()));
  value.sequence = message.sequence();
  value.event_count = message.event_count();
  value.first_timestamp_ns = message.first_timestamp_ns();
  value.last_timestamp_ns = message.last_timestamp_ns();
  value.clock_domain = static_cast<ClockDomain>(message.clock_domain());
  RETURN_IF_ERROR(FromProtoList(message.rank_evidence(), value.rank_evidence));
  RETURN_IF_ERROR(FromProtoList(message.losses(), value.losses));
  value.producer_version = message.producer_version();
  value.source_position = message.source_position();
  value.source_skip = message.source_skip();
  value.end_of_stream = message.end_of_stream();
  value.columns_bytes = message.columns_bytes();
  return value;
}

}  // namespace neurontrace
