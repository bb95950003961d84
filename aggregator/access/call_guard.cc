// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/call_guard.h"

#include <string>
#include <string_view>

#include "base/status.h"
#include "trace/access_limits.h"
#include "wire/grpc_status.h"

namespace neurontrace {
namespace {

prometheus::Counter& MakeCounter(prometheus::Registry& registry, const char* reason) {
  return prometheus::BuildCounter()
      .Name("neurontrace_aggregator_calls_refused_total")
      .Help("Calls that were refused for who made them")
      .Register(registry)
      .Add({{"reason", reason}});
}

}  // namespace

CallGuard::CallGuard(const Deps& deps)
    : deps_(deps),
      refused_unknown_(MakeCounter(deps.registry, "unauthenticated")),
      refused_role_(MakeCounter(deps.registry, "not_permitted")) {}

grpc::Status CallGuard::Process(const InputMetadata& metadata, grpc::AuthContext* context,
                                OutputMetadata*, OutputMetadata*) {
  AuditEntry entry{.action = "call"};
  entry.outcome = Judge(metadata, *context, entry);
  if (entry.outcome.ok()) return grpc::Status::OK;
  (absl::IsPermissionDenied(entry.outcome) ? refused_role_ : refused_unknown_).Increment();
  if (MayWrite()) deps_.audit.Write(entry);
  return ToGrpcStatus(entry.outcome);
}

absl::Status CallGuard::Judge(const InputMetadata& metadata, const grpc::AuthContext& context,
                              AuditEntry& entry) const {
  const auto path = metadata.find(":path");
  if (path == metadata.end()) return Internal("gRPC does not say which call it is");
  const std::string_view call(path->second.data(), path->second.size());
  entry.detail = call;
  ASSIGN_OR_RETURN(const Caller caller, deps_.callers.Find(context, metadata));
  entry.caller = caller.name;
  entry.role = WordOf(caller.role);
  return CheckCall(caller, call);
}

bool CallGuard::MayWrite() {
  const uint64_t second = deps_.clock.MonotonicNs() / 1'000'000'000;
  const std::lock_guard lock(mutex_);
  if (second != second_) {
    second_ = second;
    written_in_second_ = 0;
  }
  return ++written_in_second_ <= limits::kRefusalsWrittenPerSecond;
}

}  // namespace neurontrace
