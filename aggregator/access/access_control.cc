// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_control.h"

#include <spdlog/spdlog.h>

#include <cstdlib>
#include <utility>

#include "aggregator/access/kubernetes_api.h"
#include "aggregator/access/slot_guard.h"
#include "lib/base/address.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns "" if the variable is not set.
std::string ReadEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the only caller without TLS.
Caller Anybody() { return {.name = "anybody", .role = Role::kAdmin}; }

// Returns null if Kubernetes tokens are not accepted. Fails if they are to be accepted and this
// process does not run in a pod. Warns of rules that can match no caller.
absl::StatusOr<std::unique_ptr<TokenReviews>> OpenTokenReviews(
    const AccessControl::Options& options, const AccessControl::Deps& deps,
    const AccessPolicyStore& policy) {
  if (!options.has_tls) return nullptr;
  if (!options.kubernetes_tokens) {
    if (policy.rules()->has_service_accounts()) {
      SPDLOG_WARN("{} has service-account, which matches no caller without --kubernetes-tokens",
                  options.policy_file);
    }
    return nullptr;
  }
  ASSIGN_OR_RETURN(KubernetesPod pod, KubernetesPod::Find(ReadEnvironment));
  const std::string& audience = options.kubernetes_token_audience;
  return std::make_unique<TokenReviews>(audience,
                                        std::make_unique<KubernetesApi>(std::move(pod), audience),
                                        deps.machine_clock, deps.registry);
}

}  // namespace

// Reads every file at once, so that a bad one stops the start instead of the first call.
absl::StatusOr<std::unique_ptr<AccessControl>> AccessControl::Open(const Options& options,
                                                                   const Deps& deps) {
  // Certificates and tokens expire by the machine's clock, which may differ from the clock of
  // stored timestamps after a step.
  auto policy = std::make_unique<AccessPolicyStore>(options.policy_file, deps.machine_clock);
  RETURN_IF_ERROR(policy->Load());
  ASSIGN_OR_RETURN(std::unique_ptr<AuditLog> audit,
                   AuditLog::Open(options.audit_log, deps.machine_clock));
  ASSIGN_OR_RETURN(std::unique_ptr<TokenReviews> token_reviews,
                   OpenTokenReviews(options, deps, *policy));
  if (!options.has_tls && !IsLoopback(options.listen)) {
    SPDLOG_WARN("{} is reachable from other machines without encryption or authentication",
                options.listen);
  }
  return std::unique_ptr<AccessControl>(new AccessControl(
      options, deps, std::move(policy), std::move(audit), std::move(token_reviews)));
}

AccessControl::AccessControl(const Options& options, const Deps& deps,
                             std::unique_ptr<AccessPolicyStore> policy,
                             std::unique_ptr<AuditLog> audit,
                             std::unique_ptr<TokenReviews> token_reviews)
    : registry_(deps.registry),
      clock_(deps.clock),
      call_limits_(deps.clock, deps.registry, options.calls_per_second),
      audit_failures_(MakeCounter(deps.registry, "neurontrace_aggregator_audit_failures_total",
                                  "Audit log lines that could not be written")),
      policy_file_good_{MakeGaugeFamily(
          deps.registry, "neurontrace_aggregator_access_file_valid",
          "0 while the --access file is invalid and the previous rules are in effect")},
      policy_(std::move(policy)),
      audit_(std::move(audit)),
      token_reviews_(std::move(token_reviews)) {
  // Without TLS nobody can be identified.
  if (!options.has_tls) return;
  authenticator_.emplace(*policy_, deps.machine_clock, token_reviews_.get());
  interceptor_ = std::make_shared<AuthInterceptor>(
      AuthInterceptor::Deps{*authenticator_, *audit_, clock_, registry_, call_limits_});
}

absl::StatusOr<Caller> AccessControl::CallerOf(const grpc::ServerContext& context) const {
  if (!authenticator_) return Anybody();
  if (const auto page = page_callers_.Find(context.client_metadata())) {
    return authenticator_->Find(page->credentials);
  }
  return authenticator_->Find(*context.auth_context(), context.client_metadata());
}

std::string AccessControl::PeerOf(const grpc::ServerContext& context) const {
  const auto page = page_callers_.Find(context.client_metadata());
  return page == nullptr ? context.peer() : page->from;
}

// What the page itself asks for most is what all of it needs. Its calls are judged again.
absl::StatusOr<Caller> AccessControl::AdmitPage(const Credentials& credentials,
                                                const std::string& from) {
  constexpr std::string_view kPageCall = "/neurontrace.v1.OperatorService/GetView";
  if (interceptor_ == nullptr) return Anybody();
  return interceptor_->Admit(credentials, kPageCall, from);
}

// Refusals before the handler are counted by AuthInterceptor.
void AccessControl::RecordCall(const AuditEntry& entry) {
  if (absl::IsPermissionDenied(entry.outcome)) {
    RefusedCalls(registry_, "not_permitted").Increment();
  }
  audit_->Write(entry);
}

// Every slot needs its own processor, because gRPC does not tell a processor whose connection it
// is.
std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> AccessControl::MakeInterceptors(
    const std::shared_ptr<PeerSlots>& slots) {
  std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> interceptors;
  if (interceptor_ == nullptr) return interceptors;
  for (size_t slot = 0; slot < slots->size(); ++slot) {
    interceptors.push_back(std::make_shared<SlotGuard>(interceptor_, slots, slot));
  }
  return interceptors;
}

// The gauge exists only if there is a file.
void AccessControl::ReloadChangedFiles(bool force) {
  policy_->Poll(force);
  if (policy_->has_file()) policy_file_good_.Set(policy_->is_good());
  if (force) audit_->Reopen();
}

// The log counts by itself; the counter is raised to its count.
void AccessControl::PublishMetrics() {
  RaiseCounter(audit_failures_, static_cast<double>(audit_->failed()));
}

}  // namespace neurontrace
