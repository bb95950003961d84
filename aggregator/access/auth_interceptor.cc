// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/auth_interceptor.h"

#include <string>
#include <string_view>
#include <utility>

#include "lib/base/status.h"
#include "lib/trace/access_limits.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

AuthInterceptor::AuthInterceptor(const Deps& deps)
    : deps_(deps),
      refused_unknown_(RefusedCalls(deps.registry, "unauthenticated")),
      refused_role_(RefusedCalls(deps.registry, "not_permitted")),
      refused_rate_(RefusedCalls(deps.registry, "too_many")),
      refused_unsure_(RefusedCalls(deps.registry, "no_answer")) {}

// Only refusals are written here: handlers record what was done.
grpc::Status AuthInterceptor::Process(const Metadata& metadata, const grpc::AuthContext& context,
                                      const std::function<std::string()>& from) {
  AuditEntry entry{.action = kCallAction};
  entry.outcome = Judge(metadata, context, entry);
  if (entry.outcome.ok()) return grpc::Status::OK;
  const grpc::Status answer = ToGrpcStatus(entry.outcome);
  RecordRefusal(std::move(entry), from);
  return answer;
}

absl::StatusOr<Caller> AuthInterceptor::Admit(const Credentials& credentials, std::string_view call,
                                              const std::string& from) {
  AuditEntry entry{.action = kCallAction};
  entry.detail = call;
  auto caller = deps_.callers.Find(credentials);
  entry.outcome = caller.ok() ? JudgeCaller(*caller, call, entry) : caller.status();
  if (entry.outcome.ok()) return caller;
  const absl::Status refusal = entry.outcome;
  RecordRefusal(std::move(entry), [&from] { return from; });
  return refusal;
}

void AuthInterceptor::RecordRefusal(AuditEntry entry, const std::function<std::string()>& from) {
  CounterOf(entry.outcome).Increment();
  if (!CanWrite()) return;
  entry.from = from();
  deps_.audit.Write(entry);
}

// The status decides: too frequent, not verifiable now, not permitted, else not identified.
prometheus::Counter& AuthInterceptor::CounterOf(const absl::Status& refusal) {
  if (absl::IsResourceExhausted(refusal)) return refused_rate_;
  if (absl::IsUnavailable(refusal)) return refused_unsure_;
  return absl::IsPermissionDenied(refusal) ? refused_role_ : refused_unknown_;
}

// The caller is identified first, then its role is checked, then its rate: frequent calls that are
// not permitted count, so that guessing is limited as well.
absl::Status AuthInterceptor::Judge(const Metadata& metadata, const grpc::AuthContext& context,
                                    AuditEntry& entry) const {
  // gRPC puts the pseudo-header of HTTP/2 into the metadata; without it nothing can be judged.
  const auto path = metadata.find(":path");
  if (path == metadata.end()) return Internal("gRPC does not report the method of the call");
  const std::string_view call(path->second.data(), path->second.size());
  entry.detail = call;
  ASSIGN_OR_RETURN(const Caller caller, deps_.callers.Find(context, metadata));
  return JudgeCaller(caller, call, entry);
}

absl::Status AuthInterceptor::JudgeCaller(const Caller& caller, std::string_view call,
                                          AuditEntry& entry) const {
  entry.caller = caller.name;
  entry.role = ToString(caller.role);
  const absl::Status may = CheckCall(caller, call);
  // Agents may share one name and are limited by address in their own services. Calls that are not
  // an agent's count for everybody.
  if (caller.role == Role::kAgent && may.ok()) return may;
  RETURN_IF_ERROR(deps_.limits.AdmitCaller(caller.name));
  // The handler checks these again, with the capture that they name.
  if (caller.role != Role::kAgent && IsCheckedByItsHandler(call)) return absl::OkStatus();
  return may;
}

// Counts by whole seconds of the monotonic clock.
bool AuthInterceptor::CanWrite() {
  const uint64_t second = deps_.clock.MonotonicNs() / 1'000'000'000;
  const MutexLock lock(mutex_);
  if (second != second_) {
    second_ = second;
    written_in_second_ = 0;
  }
  return ++written_in_second_ <= limits::kRefusalsWrittenPerSecond;
}

}  // namespace neurontrace
