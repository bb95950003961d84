// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clean_text.h"
#include "base/time_units.h"
#include "trace/limits.h"
#include "trace/stream_cursor.h"
#include "wire/conversions.h"

// What is made here passes FromProto: text that came from outside (command lines, file names, what
// a runtime said) is repaired, since a message with a string that is not UTF-8 is refused as a
// whole, and what is over a limit is cut to it.
namespace neurontrace {
namespace {

template <typename Message>
using Repeated = google::protobuf::RepeatedPtrField<Message>;

std::string Identity(std::string_view text) {
  return CleanText(text, limits::kIdentityStringBytesMax);
}
std::string Detail(std::string_view text) { return CleanText(text, limits::kDetailBytesMax); }
template <typename Value>
std::span<const Value> AtMost(const std::vector<Value>& values, size_t most) {
  return std::span(values).first(std::min(values.size(), most));
}

void AddEvidence(const std::vector<RankEvidence>& evidence, Repeated<v1::RankEvidence>* messages) {
  for (const RankEvidence& one : AtMost(evidence, limits::kRankEvidencePerStreamMax)) {
    ToProto(one, messages->Add());
  }
}

// Those that are too many are summed into the last.
void AddLosses(const std::vector<Loss>& losses, Repeated<v1::Loss>* messages) {
  const auto kept = AtMost(losses, limits::kLossesPerChunkMax);
  for (const Loss& loss : kept) ToProto(loss, messages->Add());
  for (const Loss& loss : std::span(losses).subspan(kept.size())) {
    v1::Loss& last = *messages->rbegin();
    last.set_events(AddSaturating(last.events(), loss.events));
    last.set_events_unknown(last.events_unknown() || loss.events_unknown);
    if (last.first_timestamp_ns() == 0 ||  // unknown
        (loss.first_timestamp_ns != 0 && loss.first_timestamp_ns < last.first_timestamp_ns())) {
      last.set_first_timestamp_ns(loss.first_timestamp_ns);
    }
    last.set_last_timestamp_ns(std::max(last.last_timestamp_ns(), loss.last_timestamp_ns));
  }
}

void AddRemarks(const std::vector<Remark>& remarks, Repeated<v1::Remark>* messages) {
  for (const Remark& remark : AtMost(remarks, limits::kRemarksPerStreamMax)) {
    ToProto(remark, messages->Add());
  }
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
  message->set_nc_idx(static_cast<int32_t>(value.nc_idx));  // -1: limits::kNoNcIdx
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
  message->set_newest_execution(value.newest_execution);
  message->set_reaches_back_ns(value.reaches_back_ns);
  message->set_joined_late(value.joined_late);
  AddRemarks(value.remarks, message->mutable_remarks());
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
}

void ToProto(const GoneBefore& value, v1::GoneBefore* message) {
  message->set_place(static_cast<v1::LossPlace>(value.place));
  message->set_reason(static_cast<v1::LossReason>(value.reason));
}

}  // namespace neurontrace
