// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/record_codec.h"

#include <utility>

#include "aggregator/store/stored_message.h"
#include "lib/base/status.h"
#include "lib/wire/agent_hello.h"
#include "lib/wire/conversions.h"

namespace neurontrace {
namespace {

// Fails with INVALID_ARGUMENT for a value above `max`, which a damaged or newer store may hold.
template <typename Enum>
absl::StatusOr<Enum> StoredEnum(std::string_view field, uint32_t value, Enum max) {
  if (value <= static_cast<uint32_t>(max)) return static_cast<Enum>(value);
  return InvalidArgument("{} has the unknown value {}", field, value);
}

// Restored reverses ToStored. It checks each field and fails with INVALID_ARGUMENT, which
// DecodeStored turns into DATA_LOSS.
void ToStored(const CaptureAgentPart& part, v1::StoredAgentPart* message) {
  message->set_agent_id(CleanStored(part.agent_id));
  message->set_instance_id(CleanStored(part.instance_id));
  message->set_matched_workers(part.matched_workers);
  message->set_reported(part.reported);
  message->set_finished(part.finished);
  message->set_vanished(part.vanished);
  message->set_given_up(part.given_up);
  message->set_away_since_realtime_ns(part.away_since_realtime_ns);
}

CaptureAgentPart Restored(const v1::StoredAgentPart& message) {
  return {.agent_id = CleanStored(message.agent_id()),
          .instance_id = CleanStored(message.instance_id()),
          .matched_workers = message.matched_workers(),
          .reported = message.reported(),
          .finished = message.finished(),
          .vanished = message.vanished(),
          .given_up = message.given_up(),
          .away_since_realtime_ns = message.away_since_realtime_ns()};
}

void ToStored(const CaptureWorkerStatus& status, v1::CaptureWorkerStatus* message) {
  ToProto(status, message);
  // The key of the record has it.
  message->clear_capture_id();
}

absl::StatusOr<CaptureWorkerStatus> Restored(const CaptureId& capture,
                                             v1::CaptureWorkerStatus& message) {
  CaptureWorkerStatus status;
  std::vector<Remark> remarks;
  RETURN_IF_ERROR(FromStoredList(message.mutable_remarks(), remarks));
  // Remarks of unknown kinds are kept, which the conversion for messages of agents refuses.
  message.clear_remarks();
  message.set_capture_id(std::string(capture.bytes()));
  ASSIGN_OR_RETURN(status, FromProto(message));
  ASSIGN_OR_RETURN(status.worker_state,
                   StoredEnum("worker_state", static_cast<uint32_t>(message.worker_state()),
                              WorkerState::kNoTap));
  status.remarks = std::move(remarks);
  return status;
}

void ToStored(const NonParticipant& non_participant, v1::StoredBystander* message) {
  ToProto(non_participant.worker, message->mutable_worker());
  message->set_agent_id(CleanStored(non_participant.agent_id));
  message->set_reason(static_cast<uint32_t>(non_participant.reason));
  message->set_state(static_cast<v1::WorkerState>(non_participant.state));
  message->set_detail(CleanStored(non_participant.detail));
}

absl::StatusOr<NonParticipant> Restored(const v1::StoredBystander& message) {
  NonParticipant non_participant;
  ASSIGN_OR_RETURN(non_participant.worker, FromProto(message.worker()));
  non_participant.agent_id = CleanStored(message.agent_id());
  ASSIGN_OR_RETURN(non_participant.reason,
                   StoredEnum("reason", message.reason(), NonParticipantReason::kNotReported));
  ASSIGN_OR_RETURN(
      non_participant.state,
      StoredEnum("state", static_cast<uint32_t>(message.state()), WorkerState::kNoTap));
  non_participant.detail = CleanStored(message.detail());
  return non_participant;
}

absl::StatusOr<CaptureRecord> Restored(const CaptureId& id, v1::StoredCapture& message) {
  CaptureRecord record;
  record.id = id;
  ASSIGN_OR_RETURN(record.spec, FromProto(message.spec()));
  ASSIGN_OR_RETURN(record.state, StoredEnum("state", message.state(), CaptureState::kNotBegun));
  record.started_realtime_ns = message.started_realtime_ns();
  record.stopped_realtime_ns = message.stopped_realtime_ns();
  record.ended_realtime_ns = message.ended_realtime_ns();
  for (const auto& part : message.agents()) record.agents.push_back(Restored(part));
  for (auto& status : *message.mutable_workers()) {
    ASSIGN_OR_RETURN(record.workers.emplace_back(), Restored(id, status));
  }
  for (const auto& non_participant : message.bystanders()) {
    ASSIGN_OR_RETURN(record.non_participants.emplace_back(), Restored(non_participant));
  }
  for (const auto& text : message.warnings()) record.warnings.push_back(CleanStored(text));
  for (const auto& text : message.end_warnings()) record.end_warnings.push_back(CleanStored(text));
  if (message.has_begin()) {
    ASSIGN_OR_RETURN(record.begin, FromProto(message.begin()));
    // Only meaningful in the order to one host.
    record.begin->host_raw_ns = 0;
  }
  record.armed_realtime_ns = message.armed_realtime_ns();
  record.starred = message.starred();
  for (const auto& tag : message.tags()) record.tags.push_back(CleanStored(tag));
  return record;
}

absl::StatusOr<AgentRecord> Restored(const v1::StoredAgent& message) {
  AgentRecord record;
  ASSIGN_OR_RETURN(record.info, FromProto(message.info()));
  record.first_seen_realtime_ns = message.first_seen_realtime_ns();
  record.last_seen_realtime_ns = message.last_seen_realtime_ns();
  return record;
}

// Removes what only the worker's agent can report while it is connected.
void ForgetLive(v1::WorkerInventory* message) {
  message->clear_event_types();
  message->clear_tap_capture_id();
}

absl::StatusOr<WorkerRecord> Restored(v1::StoredWorker& message) {
  WorkerRecord record;
  v1::WorkerInventory& info = *message.mutable_info();
  // Also when reading, in case that another build has stored these fields.
  ForgetLive(&info);
  for (auto& core : *info.mutable_cores()) {
    for (auto& claim : *core.mutable_rank_evidence()) {
      RETURN_IF_ERROR(FromStored(claim).status());
    }
  }
  ASSIGN_OR_RETURN(record.info, FromProto(info));
  record.agent_id = CleanStored(message.agent_id());
  record.first_seen_realtime_ns = message.first_seen_realtime_ns();
  record.last_seen_realtime_ns = message.last_seen_realtime_ns();
  return record;
}

}  // namespace

std::string EncodeCaptureRecord(const CaptureRecord& record) {
  v1::StoredCapture message;
  ToProto(record.spec, message.mutable_spec());
  message.set_state(static_cast<uint32_t>(record.state));
  message.set_started_realtime_ns(record.started_realtime_ns);
  message.set_stopped_realtime_ns(record.stopped_realtime_ns);
  message.set_ended_realtime_ns(record.ended_realtime_ns);
  for (const auto& part : record.agents) ToStored(part, message.add_agents());
  for (const auto& status : record.workers) ToStored(status, message.add_workers());
  for (const auto& non_participant : record.non_participants)
    ToStored(non_participant, message.add_bystanders());
  for (const auto& text : record.warnings) message.add_warnings(CleanStored(text));
  for (const auto& text : record.end_warnings) message.add_end_warnings(CleanStored(text));
  if (record.begin) {
    ToProto(*record.begin, message.mutable_begin());
    message.mutable_begin()->clear_host_raw_ns();
  }
  message.set_armed_realtime_ns(record.armed_realtime_ns);
  message.set_starred(record.starred);
  for (const auto& tag : record.tags) message.add_tags(CleanStored(tag));
  return EncodeStored(std::move(message));
}

absl::StatusOr<CaptureRecord> DecodeCaptureRecord(const CaptureId& id, std::string_view value) {
  return DecodeStored<v1::StoredCapture>(
      "capture record", value, [&](v1::StoredCapture& message) { return Restored(id, message); });
}

std::string EncodeAgentRecord(const AgentRecord& record) {
  v1::StoredAgent message;
  ToProto(record.info, message.mutable_info());
  message.set_first_seen_realtime_ns(record.first_seen_realtime_ns);
  message.set_last_seen_realtime_ns(record.last_seen_realtime_ns);
  return EncodeStored(std::move(message));
}

absl::StatusOr<AgentRecord> DecodeAgentRecord(std::string_view value) {
  return DecodeStored<v1::StoredAgent>("agent record", value,
                                       [](v1::StoredAgent& message) { return Restored(message); });
}

std::string EncodeWorkerRecord(const WorkerRecord& record) {
  v1::StoredWorker message;
  ToProto(record.info, message.mutable_info());
  ForgetLive(message.mutable_info());
  message.set_agent_id(CleanStored(record.agent_id));
  message.set_first_seen_realtime_ns(record.first_seen_realtime_ns);
  message.set_last_seen_realtime_ns(record.last_seen_realtime_ns);
  return EncodeStored(std::move(message));
}

absl::StatusOr<WorkerRecord> DecodeWorkerRecord(std::string_view value) {
  return DecodeStored<v1::StoredWorker>(
      "worker record", value, [](v1::StoredWorker& message) { return Restored(message); });
}

}  // namespace neurontrace
