// SPDX-License-Identifier: Apache-2.0
#include "wire/conversions.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "trace/limits.h"
#include "trace/stream_cursor.h"
#include "wire/field_checks.h"

namespace neurontrace {
namespace {

template <typename Message, typename Value>
absl::Status FromProtoList(const google::protobuf::RepeatedPtrField<Message>& messages,
                           std::vector<Value>& values) {
  values.reserve(static_cast<size_t>(messages.size()));
  for (const Message& message : messages) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromProto(message));
  }
  return absl::OkStatus();
}

}  // namespace

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
  const auto nc_idx = static_cast<uint32_t>(message.nc_idx());
  if (nc_idx >= limits::kCoresPerWorkerMax && nc_idx != limits::kNoNcIdx) {
    return InvalidArgument("stream.nc_idx is {}; a worker has at most {} cores", message.nc_idx(),
                           limits::kCoresPerWorkerMax);
  }
  StreamIdentity value;
  value.agent_id = message.agent_id();
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.kind = static_cast<StreamKind>(message.kind());
  value.nc_idx = nc_idx;
  value.name = message.name();
  return value;
}

absl::StatusOr<RankEvidence> FromProto(const v1::RankEvidence& message) {
  RETURN_IF_ERROR(CheckEnum("rank_evidence.source", message.source(), v1::RANK_SOURCE_COMMUNICATOR,
                            v1::RANK_SOURCE_FRAMEWORK_FILE));
  ASSIGN_OR_RETURN(std::string detail, TakeDetail("rank_evidence.detail", message.detail()));
  if (message.worker_gid() < 0 || message.world_size() < 0) {
    return InvalidArgument("rank_evidence has a negative worker_gid or world_size: {} of {}",
                           message.worker_gid(), message.world_size());
  }
  return RankEvidence{.source = static_cast<RankSource>(message.source()),
                      .worker_gid = message.worker_gid(),
                      .world_size = message.world_size(),
                      .detail = std::move(detail),
                      .guessed = message.guessed(),
                      .contradicted = message.contradicted()};
}

absl::StatusOr<Loss> FromProto(const v1::Loss& message) {
  RETURN_IF_ERROR(CheckEnum("loss.place", message.place(), v1::LOSS_PLACE_RUNTIME_RING,
                            v1::LOSS_PLACE_RETENTION));
  RETURN_IF_ERROR(
      CheckEnum("loss.reason", message.reason(), v1::LOSS_REASON_UNKNOWN, v1::LOSS_REASON_NO_TIME));
  ASSIGN_OR_RETURN(std::string detail, TakeDetail("loss.detail", message.detail()));
  return Loss{.place = static_cast<LossPlace>(message.place()),
              .reason = static_cast<LossReason>(message.reason()),
              .events = message.events(),
              .events_unknown = message.events_unknown(),
              .first_timestamp_ns = message.first_timestamp_ns(),
              .last_timestamp_ns = message.last_timestamp_ns(),
              .detail = std::move(detail)};
}

absl::StatusOr<Remark> FromProto(const v1::Remark& message) {
  const auto kind = static_cast<RemarkKind>(message.kind());
  if (!v1::RemarkKind_IsValid(message.kind()) || FindRemarkKind(kind) == nullptr) {
    return InvalidArgument("remark.kind has the unknown value {}", message.kind());
  }
  RETURN_IF_ERROR(CheckCount("remark.details", message.details_size(), limits::kRemarkDetailsMax));
  Remark value{.kind = kind, .count = message.count(), .details = {}};
  for (const std::string& detail : message.details()) {
    RETURN_IF_ERROR(CheckText("remark.details", detail, limits::kRemarkDetailBytesMax));
    value.details.push_back(CleanText(detail, limits::kRemarkDetailBytesMax));
  }
  return value;
}

absl::StatusOr<WorkerInfo> FromProto(const v1::WorkerInventory& message) {
  RETURN_IF_ERROR(CheckEnum("worker.state", message.state(), v1::WORKER_STATE_NOT_INITIALISED,
                            v1::WORKER_STATE_NO_TAP));
  RETURN_IF_ERROR(CheckCount("worker.cores", message.cores_size(), limits::kCoresPerWorkerMax));
  RETURN_IF_ERROR(
      CheckCount("worker.warnings", message.warnings_size(), limits::kWorkerWarningsMax));
  WorkerInfo value;
  ASSIGN_OR_RETURN(value.identity, FromProto(message.identity()));
  value.state = static_cast<WorkerState>(message.state());
  ASSIGN_OR_RETURN(value.detail, TakeDetail("worker.detail", message.detail()));
  ASSIGN_OR_RETURN(value.command, TakeDetail("worker.command", message.command()));
  ASSIGN_OR_RETURN(value.job, TakeDetail("worker.job", message.job()));
  for (const v1::CoreInventory& core : message.cores()) {
    if (core.nc_idx() >= limits::kCoresPerWorkerMax) {
      return InvalidArgument("core.nc_idx is {}; a worker has at most {} cores", core.nc_idx(),
                             limits::kCoresPerWorkerMax);
    }
    CoreInfo& out = value.cores.emplace_back();
    out.nc_idx = core.nc_idx();
    RETURN_IF_ERROR(CheckCount("core.rank_evidence", core.rank_evidence_size(),
                               limits::kRankEvidencePerStreamMax));
    RETURN_IF_ERROR(FromProtoList(core.rank_evidence(), out.rank_evidence));
  }
  ASSIGN_OR_RETURN(value.runtime_version,
                   TakeDetail("worker.runtime_version", message.runtime_version()));
  value.pid_claimed = message.pid_claimed();
  for (const auto& warning : message.warnings()) {
    ASSIGN_OR_RETURN(value.warnings.emplace_back(), TakeDetail("worker.warnings", warning));
  }
  RETURN_IF_ERROR(
      CheckCount("worker.event_types", message.event_types_size(), limits::kWorkerEventTypesMax));
  for (const auto& type : message.event_types()) {
    RETURN_IF_ERROR(CheckIdentityText("worker.event_types", type));
    value.event_types.push_back(type);
  }
  RETURN_IF_ERROR(
      CheckCount("worker.job_facts", message.job_facts_size(), limits::kWorkerJobFactsMax));
  RETURN_IF_ERROR(FromProtoList(message.job_facts(), value.job_facts));
  if (!message.tap_capture_id().empty()) {
    ASSIGN_OR_RETURN(value.tap_capture, CaptureId::FromBytes(message.tap_capture_id()));
  }
  return value;
}

absl::StatusOr<CaptureWorkerStatus> FromProto(const v1::CaptureWorkerStatus& message) {
  RETURN_IF_ERROR(CheckEnum("capture_worker.state", message.state(),
                            v1::CAPTURE_WORKER_STATE_STARTING, v1::CAPTURE_WORKER_STATE_SUSPENDED));
  RETURN_IF_ERROR(CheckEnum("capture_worker.obstacle", message.obstacle(),
                            v1::CAPTURE_OBSTACLE_NONE, v1::CAPTURE_OBSTACLE_NO_ANSWER));
  CaptureWorkerStatus value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.state = static_cast<CaptureWorkerState>(message.state());
  ASSIGN_OR_RETURN(value.detail, TakeDetail("capture_worker.detail", message.detail()));
  value.events_read = message.events_read();
  value.events_stored = message.events_stored();
  value.events_lost = message.events_lost();
  value.events_lost_unknown = message.events_lost_unknown();
  value.framework = message.framework();
  value.streams = message.streams();
  value.obstacle = static_cast<CaptureObstacle>(message.obstacle());
  value.bytes_read = message.bytes_read();
  value.begun_realtime_ns = message.begun_realtime_ns();
  value.begin_offset_ns = message.begin_offset_ns();
  value.begun_as_planned = message.begun_as_planned();
  value.first_execution = message.first_execution();
  value.newest_execution = message.newest_execution();
  value.reaches_back_ns = message.reaches_back_ns();
  value.joined_late = message.joined_late();
  RETURN_IF_ERROR(
      CheckCount("capture_worker.remarks", message.remarks_size(), limits::kRemarksPerStreamMax));
  RETURN_IF_ERROR(FromProtoList(message.remarks(), value.remarks));
  return value;
}

absl::StatusOr<StreamCursor> FromProto(const v1::StreamCursor& message) {
  RETURN_IF_ERROR(
      CheckCount("cursor.losses_before", message.losses_before_size(), limits::kLossesPerChunkMax));
  StreamCursor value;
  ASSIGN_OR_RETURN(value.stream, FromProto(message.stream()));
  value.next_sequence = message.next_sequence();
  value.source_position = message.source_position();
  value.source_skip = message.source_skip();
  value.ended = message.ended();
  value.events_before = message.events_before();
  RETURN_IF_ERROR(FromProtoList(message.losses_before(), value.losses_before));
  value.sequence_mark = message.sequence_mark();
  return value;
}

absl::StatusOr<ChunkHeader> FromProto(const v1::ChunkHeader& message) {
  RETURN_IF_ERROR(CheckEnum("header.clock_domain", message.clock_domain(),
                            v1::CLOCK_DOMAIN_HOST_REALTIME, v1::CLOCK_DOMAIN_OWN));
  if (message.clock_domain() == v1::CLOCK_DOMAIN_OWN &&
      message.stream().kind() != v1::STREAM_KIND_FRAMEWORK) {
    return InvalidArgument(
        "header.clock_domain is OWN in a stream of kind {}: only framework "
        "files have times of their own",
        static_cast<int>(message.stream().kind()));
  }
  RETURN_IF_ERROR(CheckCount("header.rank_evidence", message.rank_evidence_size(),
                             limits::kRankEvidencePerStreamMax));
  RETURN_IF_ERROR(CheckCount("header.losses", message.losses_size(), limits::kLossesPerChunkMax));
  RETURN_IF_ERROR(
      CheckCount("header.losses_before", message.losses_before_size(), limits::kLossesPerChunkMax));
  RETURN_IF_ERROR(
      CheckCount("header.remarks", message.remarks_size(), limits::kRemarksPerStreamMax));
  if (message.has_replaced() && message.event_count() > 0) {
    return InvalidArgument("header.replaced is set, but the chunk has {} events",
                           message.event_count());
  }
  if (message.canary_realtime_ns() != 0 &&
      (message.event_count() > 0 || message.losses_size() > 0 || message.remarks_size() > 0 ||
       message.end_of_stream())) {
    return InvalidArgument("header.canary_realtime_ns is set, but the chunk says something else");
  }
  RETURN_IF_ERROR(CheckIdentityText("header.producer_version", message.producer_version()));
  // The one behind it would be 0, and cursors would begin anew.
  if (message.sequence() == UINT64_MAX) {
    return InvalidArgument("header.sequence is {}, behind which there is none", UINT64_MAX);
  }
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
  value.events_before = message.events_before();
  RETURN_IF_ERROR(FromProtoList(message.losses_before(), value.losses_before));
  value.sequence_mark = message.sequence_mark();
  RETURN_IF_ERROR(FromProtoList(message.remarks(), value.remarks));
  if (message.has_replaced()) {
    ASSIGN_OR_RETURN(value.replaced, FromProto(message.replaced()));
  }
  // What stands in the place of a canary is none.
  if (!value.replaced) value.canary_realtime_ns = message.canary_realtime_ns();
  return value;
}

absl::StatusOr<GoneBefore> FromProto(const v1::GoneBefore& message) {
  RETURN_IF_ERROR(CheckEnum("gone_before.place", message.place(), v1::LOSS_PLACE_AGENT_QUEUE,
                            v1::LOSS_PLACE_RETENTION));
  RETURN_IF_ERROR(CheckEnum("gone_before.reason", message.reason(), v1::LOSS_REASON_UNKNOWN,
                            v1::LOSS_REASON_NO_TIME));
  return GoneBefore{.place = static_cast<LossPlace>(message.place()),
                    .reason = static_cast<LossReason>(message.reason())};
}

}  // namespace neurontrace
