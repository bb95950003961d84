// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/audited_calls.h"

#include <fmt/format.h>

#include <utility>

#include "aggregator/access/visibility.h"
#include "lib/base/status.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

// Fills the entry step by step, so that a refused call is logged with all that was known by then.
absl::StatusOr<CaptureRecord> AuditedCalls::RecordFor(const Caller& caller, const std::string& text,
                                                      AuditEntry& entry) const {
  entry.capture = text;
  const auto found = deps_.directory.Find(caller, text);
  // The audit log names a capture whose existence the caller does not learn of.
  const auto id = found.ok() || !caller.is_limited() ? found : deps_.store.captures().Find(text);
  RETURN_IF_ERROR(id.ok() ? id.status() : found.status());
  entry.capture = id->ToString();
  ASSIGN_OR_RETURN(CaptureRecord record, deps_.directory.Get(*id));
  entry.job = record.spec.selection.job;
  const absl::Status is_owner = CheckOwner(caller, record.spec);
  if (!is_owner.ok()) return HiddenError(is_owner, found.status());
  return deps_.directory.AsSeenBy(caller, std::move(record));
}

absl::StatusOr<CaptureRecord> AuditedCalls::RecordFor(const grpc::ServerContext& context,
                                                      const std::string& text) const {
  ASSIGN_OR_RETURN(const Caller caller, deps_.access.CallerOf(context));
  // Reading is only logged if it is refused: a log of every look would hide what matters.
  AuditEntry entry{.action = "capture.show"};
  auto record = RecordFor(caller, text, entry);
  if (absl::IsPermissionDenied(record.status())) {
    entry.caller = caller.name;
    entry.role = ToString(caller.role);
    entry.from = deps_.access.PeerOf(context);
    entry.outcome = record.status();
    deps_.access.RecordCall(entry);
  }
  if (!record.ok()) return StatusForCaller(record.status());
  return record;
}

// Every path ends in one entry of the log: unknown callers, refused roles, and errors of `act`.
grpc::Status AuditedCalls::Run(
    const grpc::ServerContext& context, const Call& call,
    const std::function<absl::Status(const Caller&, AuditEntry&)>& act) const {
  AuditEntry entry{.action = call.action};
  entry.from = deps_.access.PeerOf(context);
  entry.capture = call.capture;
  const auto caller = deps_.access.CallerOf(context);
  if (caller.ok()) {
    entry.caller = caller->name;
    entry.role = ToString(caller->role);
    entry.outcome =
        CheckCall(*caller, fmt::format("/neurontrace.v1.OperatorService/{}", call.method));
    if (entry.outcome.ok()) entry.outcome = act(*caller, entry);
  } else {
    entry.outcome = caller.status();
  }
  // Counted here and not in the handler, because a command that is refused by role never reaches
  // the handler.
  if (entry.action == "capture.start") deps_.metrics.CountAnswer(entry.outcome);
  deps_.access.RecordCall(entry);
  // The log has the whole error; the caller gets only what it may see.
  const absl::Status told = StatusForCaller(entry.outcome);
  if (told.ok() || !caller.ok() || !caller->is_limited()) return ToGrpcStatus(told);
  // An id that the caller wrote stays in the answer. Removing it would distinguish the id of
  // somebody else's capture from one that nobody has.
  const auto named = CaptureId::Parse(call.capture);
  const CanSeeCapture seen = deps_.directory.SeenBy(*caller);
  const auto can_read = [&](const CaptureId& id) {
    return (named.ok() && *named == id) || seen(id);
  };
  const std::string words = HideCaptures(std::string(told.message()), can_read);
  return ToGrpcStatus(absl::Status(told.code(), words));
}

}  // namespace neurontrace
