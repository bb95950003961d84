// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_message.h"

#include <string>

#include "lib/base/status.h"
#include "lib/trace/reserved_tags.h"
#include "lib/wire/conversions.h"
#include "lib/wire/suspension_codec.h"

namespace neurontrace {
namespace {

// The states are cast to those of the message; these samples notice a shifted enum.
static_assert(static_cast<int>(CaptureState::kRecording) == v1::CAPTURE_STATE_RECORDING);
static_assert(static_cast<int>(CaptureState::kIncomplete) == v1::CAPTURE_STATE_INCOMPLETE);
static_assert(static_cast<int>(CaptureState::kArming) == v1::CAPTURE_STATE_ARMING);
static_assert(static_cast<int>(CaptureState::kNotBegun) == v1::CAPTURE_STATE_NOT_BEGUN);

// Returns whether the capture has ended without a final report about this worker: its agent
// vanished without finishing, so the stored state is that of its last report.
bool IsUntold(const CaptureRecord& record, const CaptureWorkerStatus& status) {
  if (!HasEnded(record.state) || record.state == CaptureState::kNotBegun) return false;
  return status.state != CaptureWorkerState::kComplete &&
         status.state != CaptureWorkerState::kRefused && status.state != CaptureWorkerState::kLost;
}

// The rank shown is that of the best evidence. All evidence is sent, so that a reader can see
// disagreement.
void ToMessage(const StreamRecord& record, v1::CaptureStream& message) {
  ToProto(record.identity, message.mutable_identity());
  message.set_number(record.number);
  message.set_chunks(record.chunks);
  message.set_events(record.events);
  message.set_bytes(record.bytes);
  message.set_first_timestamp_ns(record.first_timestamp_ns);
  message.set_last_timestamp_ns(record.last_timestamp_ns);
  for (const Loss& loss : record.losses) ToProto(loss, message.add_losses());
  for (const Suspension& suspension : record.suspensions) {
    ToProto(suspension, message.add_suspensions());
  }
  message.set_suspensions_count(record.suspensions_count);
  message.set_ended(record.ended);
  const RankEvidence* const best = BestEvidence(record.evidence);
  message.set_worker_gid(best == nullptr ? -1 : best->worker_gid);
  if (best != nullptr) ToProto(*best, message.mutable_evidence());
  for (const RankEvidence& claim : record.evidence) ToProto(claim, message.add_rank_evidence());
}

}  // namespace

v1::Capture ToMessage(const CaptureRecord& record, const CaptureReader::Totals& totals,
                      uint64_t now_realtime_ns) {
  v1::Capture message;
  message.set_capture_id(record.id.ToString());
  ToProto(record.spec, message.mutable_spec());
  message.set_state(static_cast<v1::CaptureState>(record.state));
  message.set_started_realtime_ns(record.started_realtime_ns);
  message.set_stopped_realtime_ns(record.stopped_realtime_ns);
  // The stored record keeps the last reported state, as a late agent may still report the final
  // one.
  for (const CaptureWorkerStatus& status : record.workers) {
    v1::CaptureWorkerStatus& worker = *message.add_workers();
    ToProto(status, &worker);
    if (!IsUntold(record, status)) continue;
    worker.set_state(v1::CAPTURE_WORKER_STATE_LOST);
    if (worker.detail().empty()) worker.set_detail("its agent did not finish");
  }
  for (const std::string& warning : record.warnings) message.add_warnings(warning);
  for (const std::string& warning : record.end_warnings) message.add_warnings(warning);
  message.set_events(totals.events);
  message.set_events_lost(totals.events_lost);
  message.set_events_lost_unknown(totals.events_lost_unknown);
  message.set_events_expired(totals.events_expired);
  message.set_bytes(totals.bytes);
  message.set_server_realtime_ns(now_realtime_ns);
  if (record.begin) ToProto(*record.begin, message.mutable_begin());
  message.set_armed_realtime_ns(record.armed_realtime_ns);
  message.set_starred(record.starred);
  for (const std::string& tag : record.tags) message.add_tags(tag);
  return message;
}

v1::StoreProblem ToMessage(const Storage::WriteProblem& problem) {
  v1::StoreProblem message;
  message.set_text(problem.text);
  message.set_since_realtime_ns(problem.since_realtime_ns);
  if (problem.free_bytes) message.set_free_bytes(*problem.free_bytes);
  message.set_lacks_room(problem.is_full);
  return message;
}

// The certificate takes the stored streams into account, which the record does not.
void SetStateBy(const Certificate& certificate, v1::Capture& message) {
  // A capture that has not begun lacks nothing.
  if (certificate.provisional || message.state() == v1::CAPTURE_STATE_NOT_BEGUN) return;
  message.set_state(certificate.complete ? v1::CAPTURE_STATE_COMPLETE
                                         : v1::CAPTURE_STATE_INCOMPLETE);
}

void AddStreams(const std::vector<StreamRecord>& streams, v1::Capture& message) {
  for (const StreamRecord& record : streams) ToMessage(record, *message.add_streams());
}

absl::Status CheckNoReservedFields(const v1::CaptureSpec& spec) {
  if (!spec.cause().empty()) {
    return InvalidArgument("spec.cause is reserved for the aggregator; omit it");
  }
  for (const v1::KeyValue& label : spec.labels()) {
    if (!IsReservedTag(label.key())) continue;
    return InvalidArgument("the tag '{}' is reserved for the aggregator; choose another key",
                           label.key());
  }
  return absl::OkStatus();
}

CaptureUpdate UpdateOf(const v1::UpdateCaptureRequest& request) {
  CaptureUpdate update;
  if (request.has_name()) update.name = request.name();
  if (request.has_starred()) update.starred = request.starred();
  update.add_tags.assign(request.add_tags().begin(), request.add_tags().end());
  update.remove_tags.assign(request.remove_tags().begin(), request.remove_tags().end());
  if (request.has_retention_ns()) update.retention_ns = request.retention_ns();
  return update;
}

}  // namespace neurontrace
