// SPDX-License-Identifier: Apache-2.0
// The calls of OperatorService that change or take something: who may make them, and that they are
// written down.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "aggregator/operator/capture_message.h"
#include "aggregator/operator/hidden_captures.h"
#include "aggregator/operator/operator_service.h"
#include "base/status.h"
#include "trace/limits.h"
#include "trace/reserved_tags.h"
#include "wire/conversions.h"
#include "wire/field_checks.h"
#include "wire/grpc_status.h"

namespace neurontrace {

absl::StatusOr<CaptureRecord> OperatorService::RecordFor(const Caller& caller,
                                                         const std::string& text,
                                                         AuditEntry& entry) {
  entry.capture = text;
  const auto found = Find(caller, text);
  // The audit log has which capture it was, and the caller not even that there is one.
  const auto id = found.ok() || !caller.is_limited() ? found : deps_.store.captures().Find(text);
  RETURN_IF_ERROR(id.ok() ? id.status() : found.status());
  entry.capture = id->ToString();
  ASSIGN_OR_RETURN(CaptureRecord record, Record(*id));
  entry.job = record.spec.job;
  const absl::Status is_owner = CheckOwner(caller, record.spec);
  if (!is_owner.ok()) return HiddenError(is_owner, found.status());
  return AsSeenBy(caller, std::move(record));
}

absl::StatusOr<CaptureRecord> OperatorService::RecordFor(const grpc::ServerContext& context,
                                                         const std::string& text) {
  ASSIGN_OR_RETURN(const Caller caller, deps_.caller(context));
  // A look is written down only if it is refused.
  AuditEntry entry{.action = "capture.show"};
  auto record = RecordFor(caller, text, entry);
  if (absl::IsPermissionDenied(record.status())) {
    entry.caller = caller.name;
    entry.role = WordOf(caller.role);
    entry.from = context.peer();
    entry.outcome = record.status();
    deps_.audit(entry);
  }
  if (!record.ok()) return ToldTo(record.status());
  return record;
}

grpc::Status OperatorService::Audited(
    const grpc::ServerContext& context, const AuditedCall& call,
    const std::function<absl::Status(const Caller&, AuditEntry&)>& act) {
  AuditEntry entry{.action = call.action};
  entry.from = context.peer();
  entry.capture = call.capture;
  const auto caller = deps_.caller(context);
  if (caller.ok()) {
    entry.caller = caller->name;
    entry.role = WordOf(caller->role);
    entry.outcome =
        CheckCall(*caller, fmt::format("/neurontrace.v1.OperatorService/{}", call.method));
    if (entry.outcome.ok()) entry.outcome = act(*caller, entry);
  } else {
    entry.outcome = caller.status();
  }
  deps_.audit(entry);
  const absl::Status told = ToldTo(entry.outcome);
  if (told.ok() || !caller.ok() || !caller->is_limited()) return ToGrpcStatus(told);
  // The id that the caller named stays: replacing it would tell it from one that nobody has.
  const auto named = CaptureId::Parse(call.capture);
  const MaySeeCapture seen = CapturesSeenBy(*caller);
  const auto may_read = [&](const CaptureId& id) {
    return (named.ok() && *named == id) || seen(id);
  };
  const std::string words = HideCaptures(std::string(told.message()), may_read);
  return ToGrpcStatus(absl::Status(told.code(), words));
}

namespace {

// What tells people who or what began a capture has to be the aggregator's own word.
absl::Status CheckNothingForged(const v1::CaptureSpec& spec) {
  if (!spec.cause().empty()) {
    return InvalidArgument("spec.cause is set by the aggregator alone: leave it out");
  }
  for (const v1::KeyValue& label : spec.labels()) {
    if (!IsReservedTag(label.key())) continue;
    return InvalidArgument("the tag '{}' is set by the aggregator alone: choose another key",
                           label.key());
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Status OperatorService::StartCapture(grpc::ServerContext* context,
                                           const v1::StartCaptureRequest* request,
                                           v1::Capture* reply) {
  const auto start = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    RETURN_IF_ERROR(CheckNothingForged(request->spec()));
    ASSIGN_OR_RETURN(CaptureSpec asked, FromProto(request->spec()));
    const CaptureSpec spec = WithOwner(caller, std::move(asked));
    entry.job = spec.job;
    entry.detail = spec.name;
    RETURN_IF_ERROR(CheckOwner(caller, spec));
    deps_.refresh_usage();
    ASSIGN_OR_RETURN(
        const CaptureRecord record, OnSequence([&] {
          return deps_.coordinator.StartCapture(
              spec, [&caller](const CaptureSpec& other) { return CheckOwner(caller, other).ok(); });
        }));
    entry.capture = record.id.ToString();
    *reply = neurontrace::ToMessage(AsSeenBy(caller, record), {}, deps_.clock.RealtimeNs());
    if (caller.is_limited()) HideCapturesIn(CapturesSeenBy(caller), *reply);
    return absl::OkStatus();
  };
  return Audited(*context, {"capture.start", "StartCapture", ""}, start);
}

grpc::Status OperatorService::StopCapture(grpc::ServerContext* context,
                                          const v1::CaptureReference* request, v1::Capture* reply) {
  const auto stop = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    ASSIGN_OR_RETURN(const CaptureRecord known, RecordFor(caller, request->capture_id(), entry));
    auto record = OnSequence([&] { return deps_.coordinator.StopCapture(known.id); });
    // One that has ended already is answered as it is.
    if (absl::IsNotFound(record.status())) record = deps_.store.captures().Get(known.id);
    RETURN_IF_ERROR(record.status());
    ASSIGN_OR_RETURN(*reply, DescribeTo(caller, *record, Extent::kBrief));
    return absl::OkStatus();
  };
  return Audited(*context, {"capture.stop", "StopCapture", request->capture_id()}, stop);
}

grpc::Status OperatorService::DeleteCapture(grpc::ServerContext* context,
                                            const v1::CaptureReference* request,
                                            v1::DeleteCaptureReply* reply) {
  const auto remove = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.capture = request->capture_id();
    ASSIGN_OR_RETURN(const CaptureId id, Find(caller, request->capture_id()));
    entry.capture = id.ToString();
    // One whose record cannot be read can be deleted all the same, by who may delete all.
    const auto record = Record(id);
    if (record.ok()) entry.job = record->spec.job;
    RETURN_IF_ERROR(CheckOwner(caller, record.ok() ? record->spec : CaptureSpec()));
    return Delete(id, *reply);
  };
  return Audited(*context, {"capture.delete", "DeleteCapture", request->capture_id()}, remove);
}

absl::Status OperatorService::Delete(const CaptureId& id, v1::DeleteCaptureReply& reply) {
  const auto claim = deps_.claim_for_deletion(id);
  if (claim == nullptr) {
    return FailedPrecondition(
        "capture {} is being exported, or deleted already: try again when that is over",
        id.ToString());
  }
  ASSIGN_OR_RETURN(const bool is_running, OnSequence([&] {
                     deps_.coordinator.Forget(id);
                     return deps_.coordinator.FindRunning(id) != nullptr;
                   }));
  if (is_running) {
    return FailedPrecondition("capture {} is running: stop it and wait for its end first",
                              id.ToString());
  }
  ASSIGN_OR_RETURN(const auto deleted, deps_.store.DeleteCapture(id));
  reply.set_chunks(deleted.chunks);
  reply.set_bytes(deleted.bytes);
  return absl::OkStatus();
}

grpc::Status OperatorService::FireTrigger(grpc::ServerContext* context,
                                          const v1::FireTriggerRequest* request,
                                          v1::FireTriggerReply* reply) {
  const auto fire = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.detail = request->name();
    RETURN_IF_ERROR(CheckText("cause", request->cause(), limits::kDetailBytesMax));
    // What a rule captures is not of one job.
    RETURN_IF_ERROR(CheckOwner(caller, {}));
    ASSIGN_OR_RETURN(*reply, OnSequence([&] { return deps_.fire_trigger(*request); }));
    return absl::OkStatus();
  };
  return Audited(*context, {"trigger.fire", "FireTrigger", ""}, fire);
}

grpc::Status OperatorService::Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                                     grpc::ServerWriter<v1::ExportReply>* writer) {
  const auto send = [&](const Caller& caller, AuditEntry& entry) -> absl::Status {
    entry.detail = request->destination();
    if (!request->destination().empty() && caller.role < Role::kOperator) {
      return absl::PermissionDeniedError(
          fmt::format("'{}' has the role viewer; exports that the aggregator writes (--to) need "
                      "operator or higher",
                      caller.name));
    }
    ASSIGN_OR_RETURN(const CaptureRecord record, RecordFor(caller, request->capture_id(), entry));
    ASSIGN_OR_RETURN(const auto call,
                     deps_.exports.Take(caller.name, [context] { context->TryCancel(); }));
    // One that a crash cuts off has been, too.
    AuditEntry begun = entry;
    begun.action = "export.begin";
    deps_.audit(begun);
    return call->Judge(deps_.export_capture(record, *request, [&](const v1::ExportReply& reply) {
      return call->Write([&] { return !context->IsCancelled() && writer->Write(reply); });
    }));
  };
  return Audited(*context, {"export", "Export", request->capture_id()}, send);
}

}  // namespace neurontrace
