// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/conversions.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/event_filter.h"
#include "lib/trace/limits.h"
#include "lib/wire/field_checks.h"
#include "lib/wire/framework_codec.h"
#include "lib/wire/suspension_codec.h"

// Text that came from outside (command lines, file names, what a runtime reported) is repaired
// before it is sent, since a message with a string that is not UTF-8 is refused as a whole. Enums
// have equal values on both sides and are cast; FromProto checks their range first.
namespace neurontrace {
namespace {

template <typename Message>
using Repeated = google::protobuf::RepeatedPtrField<Message>;

// Texts as they are sent: names that peers compare, and explanations for people.
std::string Identity(std::string_view text) {
  return CleanText(text, limits::kIdentityStringBytesMax);
}
std::string Detail(std::string_view text) { return CleanText(text, limits::kDetailBytesMax); }
// Returns the first `most` values: senders stay below the limits that FromProto checks.
template <typename Value>
std::span<const Value> AtMost(const std::vector<Value>& values, size_t most) {
  return std::span(values).first(std::min(values.size(), most));
}

// Evidence is ordered best first, so that the worst is omitted.
void AddEvidence(const std::vector<RankEvidence>& evidence, Repeated<v1::RankEvidence>* messages) {
  for (const RankEvidence& one : AtMost(evidence, limits::kRankEvidencePerStreamMax)) {
    ToProto(one, messages->Add());
  }
}

// Losses beyond the limit are summed into the last one, so that no number of events is lost.
void AddLosses(const std::vector<Loss>& losses, Repeated<v1::Loss>* messages) {
  const auto kept = AtMost(losses, limits::kLossesPerChunkMax);
  for (const Loss& loss : kept) ToProto(loss, messages->Add());
  for (const Loss& loss : std::span(losses).subspan(kept.size())) {
    v1::Loss& last = *messages->rbegin();
    last.set_events(AddSaturating(last.events(), loss.events));
    last.set_events_unknown(last.events_unknown() || loss.events_unknown);
    // 0 means unknown.
    if (last.first_timestamp_ns() == 0 ||
        (loss.first_timestamp_ns != 0 && loss.first_timestamp_ns < last.first_timestamp_ns())) {
      last.set_first_timestamp_ns(loss.first_timestamp_ns);
    }
    last.set_last_timestamp_ns(std::max(last.last_timestamp_ns(), loss.last_timestamp_ns));
  }
}

// Remarks beyond the limit are omitted: there are fewer kinds than that.
void AddRemarks(const std::vector<Remark>& remarks, Repeated<v1::Remark>* messages) {
  for (const Remark& remark : AtMost(remarks, limits::kRemarksPerStreamMax)) {
    ToProto(remark, messages->Add());
  }
}

// The caller has checked the number of messages.
template <typename Message, typename Value>
absl::Status FromProtoList(const google::protobuf::RepeatedPtrField<Message>& messages,
                           std::vector<Value>& values) {
  values.reserve(static_cast<size_t>(messages.size()));
  for (const Message& message : messages) {
    ASSIGN_OR_RETURN(values.emplace_back(), FromProto(message));
  }
  return absl::OkStatus();
}

// For requests of people: a text that is too long is refused by the receiver with a message, not
// silently cut.
std::string CopyBytes(std::string_view text) {
  return CleanText(text, std::numeric_limits<size_t>::max());
}

void ToProto(const std::vector<KeyValue>& values, Repeated<v1::KeyValue>* messages) {
  for (const KeyValue& value : values) {
    v1::KeyValue* const message = messages->Add();
    message->set_key(CopyBytes(value.key));
    message->set_value(CopyBytes(value.value));
  }
}

// Checks the number of entries of a header's lists. Fails with INVALID_ARGUMENT, naming the field.
absl::Status CheckListCounts(const v1::ChunkHeader& message) {
  RETURN_IF_ERROR(CheckCount("header.rank_evidence", message.rank_evidence_size(),
                             limits::kRankEvidencePerStreamMax));
  RETURN_IF_ERROR(CheckCount("header.losses", message.losses_size(), limits::kLossesPerChunkMax));
  RETURN_IF_ERROR(
      CheckCount("header.losses_before", message.losses_before_size(), limits::kLossesPerChunkMax));
  return CheckCount("header.remarks", message.remarks_size(), limits::kRemarksPerStreamMax);
}

// Parts of FromProto(CaptureSpec), split for the length of functions. They fail with
// INVALID_ARGUMENT, naming the field.
absl::Status ParseSelection(const v1::CaptureSpec& message, CaptureSpec& value) {
  RETURN_IF_ERROR(
      CheckCount("spec.job_facts", message.job_facts_size(), limits::kSelectionItemsMax));
  for (const v1::KeyValue& fact : message.job_facts()) {
    ASSIGN_OR_RETURN(value.selection.job_facts.emplace_back(), FromProto(fact));
  }
  RETURN_IF_ERROR(
      CheckCount("spec.worker_gids", message.worker_gids_size(), limits::kSelectionItemsMax));
  for (const v1::GidRange& range : message.worker_gids()) {
    if (range.first() < 0 || range.last() < range.first()) {
      return InvalidArgument("spec.worker_gids has the invalid range {} to {}", range.first(),
                             range.last());
    }
    value.selection.worker_gids.push_back({range.first(), range.last()});
  }
  RETURN_IF_ERROR(CheckCount("spec.labels", message.labels_size(), limits::kCaptureLabelsMax));
  for (const v1::KeyValue& label : message.labels()) {
    ASSIGN_OR_RETURN(value.labels.emplace_back(), FromProto(label));
  }
  value.filter.all_events = message.all_events();
  if (message.require_percent() > 100) {
    return InvalidArgument("spec.require_percent is {}; it must be from 0 to 100",
                           message.require_percent());
  }
  value.conditions.require_percent = message.require_percent();
  return absl::OkStatus();
}

// Takes how the capture begins and ends, how much of it is kept and what it may cost.
absl::Status TakeEnd(const v1::CaptureSpec& message, CaptureSpec& value) {
  RETURN_IF_ERROR(
      CheckEnum("spec.mode", message.mode(), v1::CAPTURE_MODE_STREAM, v1::CAPTURE_MODE_PREVIEW));
  value.mode = static_cast<CaptureMode>(message.mode());
  value.conditions.at_next_execution = message.at_next_execution();
  value.conditions.at_execution = message.at_execution();
  value.conditions.executions = message.executions();
  if (value.mode != CaptureMode::kStream && value.conditions.by_execution()) {
    return InvalidArgument("only a capture of future events can start and end with executions");
  }
  value.budget.stored_bytes_max = message.bytes_max();
  value.retention.duration_ns = message.retention_ns();
  value.retention.bytes = message.retention_bytes();
  value.timing.last_ns = message.last_ns();
  if (!message.flight_recorder().empty()) {
    ASSIGN_OR_RETURN(value.timing.flight_recorder, CaptureId::FromBytes(message.flight_recorder()));
  }
  value.budget.core_ppm = message.budget_core_ppm();
  value.budget.bytes_per_second = message.budget_bytes_per_second();
  ASSIGN_OR_RETURN(value.cause, CheckDetail("spec.cause", message.cause()));
  value.watch = message.watch();
  return absl::OkStatus();
}

}  // namespace

void ToProto(const WorkerIdentity& value, v1::WorkerIdentity* message) {
  message->set_instance_id(Identity(value.instance_id));
  message->set_boot_id(Identity(value.boot_id));
  message->set_pid(value.pid);
  message->set_start_time_ticks(value.start_time_ticks);
  message->set_container_id(Identity(value.container_id));
}

void ToProto(const StreamIdentity& value, v1::StreamIdentity* message) {
  message->set_agent_id(Identity(value.agent_id));
  ToProto(value.worker, message->mutable_worker());
  message->set_kind(static_cast<v1::StreamKind>(value.kind));
  // limits::kNoNcIdx becomes -1.
  message->set_nc_idx(static_cast<int32_t>(value.nc_idx));
  message->set_name(Identity(value.name));
}

void ToProto(const RankEvidence& value, v1::RankEvidence* message) {
  message->set_source(static_cast<v1::RankSource>(value.source));
  message->set_worker_gid(value.worker_gid);
  message->set_world_size(value.world_size);
  message->set_detail(Detail(value.detail));
  message->set_guessed(value.guessed);
  message->set_contradicted(value.contradicted);
}

void ToProto(const Loss& value, v1::Loss* message) {
  message->set_place(static_cast<v1::LossPlace>(value.place));
  message->set_reason(static_cast<v1::LossReason>(value.reason));
  message->set_events(value.events);
  message->set_events_unknown(value.events_unknown);
  message->set_first_timestamp_ns(value.first_timestamp_ns);
  message->set_last_timestamp_ns(value.last_timestamp_ns);
  message->set_detail(Detail(value.detail));
}

void ToProto(const Remark& value, v1::Remark* message) {
  message->set_kind(static_cast<v1::RemarkKind>(value.kind));
  message->set_count(value.count);
  for (const std::string& detail : AtMost(value.details, limits::kRemarkDetailsMax)) {
    message->add_details(CleanText(detail, limits::kRemarkDetailBytesMax));
  }
}

void ToProto(const WorkerInfo& value, v1::WorkerInventory* message) {
  ToProto(value.identity, message->mutable_identity());
  message->set_state(static_cast<v1::WorkerState>(value.state));
  message->set_detail(Detail(value.detail));
  message->set_command(Detail(value.command));
  message->set_job(Detail(value.job));
  for (const CoreInfo& core : AtMost(value.cores, limits::kCoresPerWorkerMax)) {
    v1::CoreInventory* out = message->add_cores();
    out->set_nc_idx(core.nc_idx);
    AddEvidence(core.rank_evidence, out->mutable_rank_evidence());
  }
  message->set_runtime_version(Detail(value.runtime_version));
  message->set_pid_claimed(value.pid_claimed);
  for (const auto& warning : AtMost(value.warnings, limits::kWorkerWarningsMax)) {
    message->add_warnings(Detail(warning));
  }
  for (const auto& type : AtMost(value.event_types, limits::kWorkerEventTypesMax)) {
    message->add_event_types(Identity(type));
  }
  for (const KeyValue& fact : AtMost(value.job_facts, limits::kWorkerJobFactsMax)) {
    ToProto(fact, message->add_job_facts());
  }
  if (!value.tap_capture.empty()) {
    message->set_tap_capture_id(std::string(value.tap_capture.bytes()));
  }
}

// worker_state is written for operators; FromProto does not read it.
void ToProto(const CaptureWorkerStatus& value, v1::CaptureWorkerStatus* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  ToProto(value.worker, message->mutable_worker());
  message->set_state(static_cast<v1::CaptureWorkerState>(value.state));
  message->set_detail(Detail(value.detail));
  message->set_events_read(value.events_read);
  message->set_events_stored(value.events_stored);
  message->set_events_lost(value.events_lost);
  message->set_events_lost_unknown(value.events_lost_unknown);
  message->set_framework(value.framework);
  message->set_streams(value.streams);
  message->set_worker_state(static_cast<v1::WorkerState>(value.worker_state));
  message->set_obstacle(static_cast<v1::CaptureObstacle>(value.obstacle));
  message->set_bytes_read(value.bytes_read);
  message->set_begun_realtime_ns(value.begun_realtime_ns);
  message->set_begin_offset_ns(value.begin_offset_ns);
  message->set_begun_as_planned(value.begun_as_planned);
  message->set_first_execution(value.first_execution);
  message->set_highest_first_execution(value.highest_first_execution);
  message->set_lowest_newest_execution(value.lowest_newest_execution);
  message->set_newest_execution(value.newest_execution);
  message->set_cores_without_execution(value.cores_without_execution);
  message->set_reaches_back_ns(value.reaches_back_ns);
  message->set_joined_late(value.joined_late);
  AddRemarks(value.remarks, message->mutable_remarks());
  AddFrameworkTraces(value.framework_traces, message);
}

void ToProto(const StreamCursor& value, v1::StreamCursor* message) {
  ToProto(value.stream, message->mutable_stream());
  message->set_next_sequence(value.next_sequence);
  message->set_source_position(value.source_position);
  message->set_source_skip(value.source_skip);
  message->set_ended(value.ended);
  message->set_events_before(value.events_before);
  AddLosses(value.losses_before, message->mutable_losses_before());
  message->set_sequence_mark(value.sequence_mark);
}

void ToProto(const ChunkHeader& value, v1::ChunkHeader* message) {
  message->set_capture_id(std::string(value.capture_id.bytes()));
  ToProto(value.stream, message->mutable_stream());
  message->set_sequence(value.sequence);
  message->set_event_count(value.event_count);
  message->set_first_timestamp_ns(value.first_timestamp_ns);
  message->set_last_timestamp_ns(value.last_timestamp_ns);
  message->set_clock_domain(static_cast<v1::ClockDomain>(value.clock_domain));
  AddEvidence(value.rank_evidence, message->mutable_rank_evidence());
  AddLosses(value.losses, message->mutable_losses());
  message->set_producer_version(Identity(value.producer_version));
  message->set_source_position(value.source_position);
  message->set_source_skip(value.source_skip);
  message->set_end_of_stream(value.end_of_stream);
  message->set_columns_bytes(value.columns_bytes);
  message->set_events_before(value.events_before);
  AddLosses(value.losses_before, message->mutable_losses_before());
  message->set_sequence_mark(value.sequence_mark);
  if (value.replaced) ToProto(*value.replaced, message->mutable_replaced());
  message->set_canary_realtime_ns(value.canary_realtime_ns);
  AddRemarks(value.remarks, message->mutable_remarks());
  AddSuspensions(value.suspensions, message->mutable_suspensions());
}

void ToProto(const PrecedingGap& value, v1::GoneBefore* message) {
  message->set_place(static_cast<v1::LossPlace>(value.place));
  message->set_reason(static_cast<v1::LossReason>(value.reason));
}

// The instance is required; a worker may be without a container, and its boot may be unknown.
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
  RETURN_IF_ERROR(CheckEnum("stream.kind", message.kind(), v1::STREAM_KIND_NEURON_CORE,
                            v1::STREAM_KIND_ANNOTATION));
  const auto nc_idx = static_cast<uint32_t>(message.nc_idx());
  // Bounds the index of tables by core.
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

// Evidence without a known source is refused, as its rank among other evidence would be undefined.
absl::StatusOr<RankEvidence> FromProto(const v1::RankEvidence& message) {
  RETURN_IF_ERROR(CheckEnum("rank_evidence.source", message.source(), v1::RANK_SOURCE_COMMUNICATOR,
                            v1::RANK_SOURCE_FRAMEWORK_FILE));
  ASSIGN_OR_RETURN(std::string detail, CheckDetail("rank_evidence.detail", message.detail()));
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
  ASSIGN_OR_RETURN(std::string detail, CheckDetail("loss.detail", message.detail()));
  return Loss{.place = static_cast<LossPlace>(message.place()),
              .reason = static_cast<LossReason>(message.reason()),
              .events = message.events(),
              .events_unknown = message.events_unknown(),
              .first_timestamp_ns = message.first_timestamp_ns(),
              .last_timestamp_ns = message.last_timestamp_ns(),
              .detail = std::move(detail)};
}

absl::StatusOr<Remark> FromProto(const v1::Remark& message) {
  // Kinds have gaps in their numbers, so a range check is not enough.
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

// Every list is counted before it is copied, and evidence core by core.
absl::StatusOr<WorkerInfo> FromProto(const v1::WorkerInventory& message) {
  RETURN_IF_ERROR(CheckEnum("worker.state", message.state(), v1::WORKER_STATE_NOT_INITIALISED,
                            v1::WORKER_STATE_NO_TAP));
  RETURN_IF_ERROR(CheckCount("worker.cores", message.cores_size(), limits::kCoresPerWorkerMax));
  RETURN_IF_ERROR(
      CheckCount("worker.warnings", message.warnings_size(), limits::kWorkerWarningsMax));
  WorkerInfo value;
  ASSIGN_OR_RETURN(value.identity, FromProto(message.identity()));
  value.state = static_cast<WorkerState>(message.state());
  ASSIGN_OR_RETURN(value.detail, CheckDetail("worker.detail", message.detail()));
  ASSIGN_OR_RETURN(value.command, CheckDetail("worker.command", message.command()));
  ASSIGN_OR_RETURN(value.job, CheckDetail("worker.job", message.job()));
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
                   CheckDetail("worker.runtime_version", message.runtime_version()));
  value.pid_claimed = message.pid_claimed();
  for (const auto& warning : message.warnings()) {
    ASSIGN_OR_RETURN(value.warnings.emplace_back(), CheckDetail("worker.warnings", warning));
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

// The counts are the agent's claims and are not compared with each other.
absl::StatusOr<CaptureWorkerStatus> FromProto(const v1::CaptureWorkerStatus& message) {
  RETURN_IF_ERROR(CheckEnum("capture_worker.state", message.state(),
                            v1::CAPTURE_WORKER_STATE_STARTING, v1::CAPTURE_WORKER_STATE_SUSPENDED));
  RETURN_IF_ERROR(CheckEnum("capture_worker.obstacle", message.obstacle(),
                            v1::CAPTURE_OBSTACLE_NONE, v1::CAPTURE_OBSTACLE_NO_ANSWER));
  CaptureWorkerStatus value;
  ASSIGN_OR_RETURN(value.capture_id, CaptureId::FromBytes(message.capture_id()));
  ASSIGN_OR_RETURN(value.worker, FromProto(message.worker()));
  value.state = static_cast<CaptureWorkerState>(message.state());
  ASSIGN_OR_RETURN(value.detail, CheckDetail("capture_worker.detail", message.detail()));
  value.events_read = message.events_read();
  value.events_stored = message.events_stored();
  value.events_lost = message.events_lost();
  value.events_lost_unknown = message.events_lost_unknown();
  value.framework = message.framework();
  value.streams = message.streams();
  // worker_state is not read: the aggregator sets it, and an agent's value would be a claim.
  value.obstacle = static_cast<CaptureObstacle>(message.obstacle());
  value.bytes_read = message.bytes_read();
  value.begun_realtime_ns = message.begun_realtime_ns();
  value.begin_offset_ns = message.begin_offset_ns();
  value.begun_as_planned = message.begun_as_planned();
  value.first_execution = message.first_execution();
  value.highest_first_execution = message.highest_first_execution();
  value.lowest_newest_execution = message.lowest_newest_execution();
  value.newest_execution = message.newest_execution();
  value.cores_without_execution = message.cores_without_execution();
  value.reaches_back_ns = message.reaches_back_ns();
  value.joined_late = message.joined_late();
  RETURN_IF_ERROR(
      CheckCount("capture_worker.remarks", message.remarks_size(), limits::kRemarksPerStreamMax));
  RETURN_IF_ERROR(FromProtoList(message.remarks(), value.remarks));
  ASSIGN_OR_RETURN(value.framework_traces, FrameworkTracesOf(message));
  return value;
}

// An agent receives cursors from its aggregator and continues its streams by them.
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

// The columns are not seen here: ChunkValidator compares them with the accepted header. A chunk
// that replaces another one has no events of its own, and a canary has no content, as the store
// keeps only the last one of a stream. Limits are checked before anything is copied.
absl::StatusOr<ChunkHeader> FromProto(const v1::ChunkHeader& message) {
  RETURN_IF_ERROR(CheckEnum("header.clock_domain", message.clock_domain(),
                            v1::CLOCK_DOMAIN_HOST_REALTIME, v1::CLOCK_DOMAIN_OWN));
  // An event of the runtime with an unknown clock would be shown at a wrong time.
  if (message.clock_domain() == v1::CLOCK_DOMAIN_OWN &&
      message.stream().kind() != v1::STREAM_KIND_FRAMEWORK) {
    return InvalidArgument(
        "header.clock_domain is OWN in a stream of kind {}; only framework files have their own "
        "clock",
        static_cast<int>(message.stream().kind()));
  }
  RETURN_IF_ERROR(CheckListCounts(message));
  if (message.has_replaced() && message.event_count() > 0) {
    return InvalidArgument("header.replaced is set, but the chunk has {} events",
                           message.event_count());
  }
  if (message.canary_realtime_ns() != 0 &&
      (message.event_count() > 0 || message.losses_size() > 0 || message.remarks_size() > 0 ||
       message.end_of_stream())) {
    return InvalidArgument("header.canary_realtime_ns is set, but the chunk is not empty");
  }
  RETURN_IF_ERROR(CheckIdentityText("header.producer_version", message.producer_version()));
  // The next sequence number would be 0, and cursors would restart at 0.
  if (message.sequence() == UINT64_MAX) {
    return InvalidArgument("header.sequence is {}, which has no successor", UINT64_MAX);
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
    return InvalidArgument("header.first_timestamp_ns {} is later than last_timestamp_ns {}",
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
  ASSIGN_OR_RETURN(value.suspensions, SuspensionsOf(message));
  if (message.has_replaced()) {
    ASSIGN_OR_RETURN(value.replaced, FromProto(message.replaced()));
  }
  // A chunk that replaces a canary is not a canary.
  if (!value.replaced) value.canary_realtime_ns = message.canary_realtime_ns();
  return value;
}

// Chunks can be lost only after they were made, so earlier places are refused.
absl::StatusOr<PrecedingGap> FromProto(const v1::GoneBefore& message) {
  RETURN_IF_ERROR(CheckEnum("gone_before.place", message.place(), v1::LOSS_PLACE_AGENT_QUEUE,
                            v1::LOSS_PLACE_RETENTION));
  RETURN_IF_ERROR(CheckEnum("gone_before.reason", message.reason(), v1::LOSS_REASON_UNKNOWN,
                            v1::LOSS_REASON_NO_TIME));
  return PrecedingGap{.place = static_cast<LossPlace>(message.place()),
                      .reason = static_cast<LossReason>(message.reason())};
}

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
  // 0 means without an end.
  if (message.last_execution() != 0 && message.last_execution() < message.first_execution()) {
    return InvalidArgument("begin.last_execution {} is before first_execution {}",
                           message.last_execution(), message.first_execution());
  }
  return CaptureBegin{.reference_ns = message.reference_ns(),
                      .host_raw_ns = message.host_raw_ns(),
                      .bound_ns = message.bound_ns(),
                      .first_execution = message.first_execution(),
                      .last_execution = message.last_execution()};
}

void ToProto(const CaptureSpec& value, v1::CaptureSpec* message) {
  message->set_name(CopyBytes(value.name));
  message->set_job(CopyBytes(value.selection.job));
  for (const auto& id : value.selection.instance_ids) message->add_instance_ids(CopyBytes(id));
  for (const uint32_t core : value.selection.neuron_cores) message->add_neuron_cores(core);
  for (const auto& type : value.filter.event_types) message->add_event_types(CopyBytes(type));
  message->set_duration_ns(value.timing.duration_ns);
  message->set_ring_events_per_core(value.retention.ring_events_per_core);
  message->set_include_neuron(value.filter.include_neuron);
  message->set_include_framework(value.filter.include_framework);
  message->set_mode(static_cast<v1::CaptureMode>(value.mode));
  ToProto(value.selection.job_facts, message->mutable_job_facts());
  for (const GidRange& range : value.selection.worker_gids) {
    v1::GidRange* const out = message->add_worker_gids();
    out->set_first(range.first);
    out->set_last(range.last);
  }
  message->set_all_events(value.filter.all_events);
  ToProto(value.labels, message->mutable_labels());
  message->set_require_percent(value.conditions.require_percent);
  message->set_at_next_execution(value.conditions.at_next_execution);
  message->set_at_execution(value.conditions.at_execution);
  message->set_executions(value.conditions.executions);
  message->set_bytes_max(value.budget.stored_bytes_max);
  message->set_retention_ns(value.retention.duration_ns);
  message->set_retention_bytes(value.retention.bytes);
  message->set_last_ns(value.timing.last_ns);
  if (!value.timing.flight_recorder.empty()) {
    message->set_flight_recorder(std::string(value.timing.flight_recorder.bytes()));
  }
  message->set_budget_core_ppm(value.budget.core_ppm);
  message->set_budget_bytes_per_second(value.budget.bytes_per_second);
  message->set_cause(CopyBytes(value.cause));
  message->set_watch(value.watch);
  FrameworksToProto(value, message);
}

// Names and sizes of lists come first, then each group of fields; the groups are compared with each
// other last.
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
  value.selection.job = message.job();
  for (const auto& id : message.instance_ids()) {
    RETURN_IF_ERROR(CheckIdentityText("spec.instance_ids", id));
    value.selection.instance_ids.push_back(id);
  }
  for (const uint32_t core : message.neuron_cores()) {
    if (core >= limits::kCoresPerWorkerMax) {
      return InvalidArgument("spec.neuron_cores has core {}; the highest possible is {}", core,
                             limits::kCoresPerWorkerMax - 1);
    }
    value.selection.neuron_cores.push_back(core);
  }
  value.filter.event_types.assign(message.event_types().begin(), message.event_types().end());
  // Parsed only to refuse a wrong filter where the capture is asked for, not on each agent.
  RETURN_IF_ERROR(EventFilter::Parse(value.filter.event_types).status());
  const uint64_t ring = message.ring_events_per_core();
  if (ring != 0 && (ring < limits::kRingEventsPerCoreMin || ring > limits::kRingEventsPerCoreMax)) {
    return InvalidArgument("spec.ring_events_per_core is {}; it must be from {} to {}", ring,
                           limits::kRingEventsPerCoreMin, limits::kRingEventsPerCoreMax);
  }
  value.timing.duration_ns = message.duration_ns();
  value.retention.ring_events_per_core = ring;
  value.filter.include_neuron = message.include_neuron();
  value.filter.include_framework = message.include_framework();
  RETURN_IF_ERROR(ParseSelection(message, value));
  RETURN_IF_ERROR(TakeEnd(message, value));
  RETURN_IF_ERROR(FrameworksFromProto(message, value));
  if (!value.filter.include_neuron && !value.filter.include_framework) {
    return InvalidArgument(
        "the capture excludes both the runtime's events and framework files, so nothing is "
        "recorded");
  }
  return value;
}

}  // namespace neurontrace
