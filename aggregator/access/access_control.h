// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_policy_store.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/auth_interceptor.h"
#include "aggregator/access/authenticator.h"
#include "aggregator/access/call_limits.h"
#include "aggregator/access/page_callers.h"
#include "aggregator/access/token_reviews.h"
#include "lib/base/clock.h"
#include "lib/health/metric_builders.h"
#include "lib/wire/call_admission.h"
#include "lib/wire/peer_slots.h"

namespace neurontrace {

// Decides who may call the aggregator and records what callers did. Owns the access policy, the
// authenticator, the call limits and the audit log. Complete after Open. Any thread, unless a
// method says otherwise. Owned by the aggregator, whose server (guarded_server.h) and handlers use
// it.
class AccessControl final : public CallAdmission {
 public:
  // Comes from the configuration of the aggregator.
  struct Options {
    std::string policy_file;  // empty: the roles are in the certificates
    std::string audit_log;
    std::string listen;    // HOST:PORT of gRPC, for a warning if it is reachable in plain text
    bool has_tls = false;  // without TLS every caller is an administrator
    bool kubernetes_tokens = false;  // accepted in addition to those of `policy_file`
    std::string kubernetes_token_audience;
    uint32_t calls_per_second = 0;  // of each caller except agents
  };
  // All of them must outlive this.
  struct Deps {
    prometheus::Registry& registry;
    // Measures the seconds of the limits.
    const Clock& clock;
    const Clock& machine_clock;  // for certificates, tokens and the audit log
  };

  // Fails if the policy or the audit log cannot be opened, or if tokens of Kubernetes are to be
  // accepted and this process does not run in a pod. Logs a warning if the port is reachable from
  // other machines without TLS.
  static absl::StatusOr<std::unique_ptr<AccessControl>> Open(const Options& options,
                                                             const Deps& deps);
  AccessControl(const AccessControl&) = delete;
  AccessControl& operator=(const AccessControl&) = delete;

  AuditLog& audit() { return *audit_; }
  // Returns whether callers are identified, which needs TLS; otherwise all are equal.
  bool identifies_callers() const { return authenticator_.has_value(); }
  // Returns who makes the call: the caller of the page's ticket, if it has one. Fails as
  // Authenticator::Find does. Without TLS every caller is an administrator: the port is
  // loopback-only, or the operator opted in.
  absl::StatusOr<Caller> CallerOf(const grpc::ServerContext& context) const;
  // Returns the address of the other end, as gRPC writes it: that of the browser for a call of the
  // page.
  std::string PeerOf(const grpc::ServerContext& context) const;
  // Judges a request at the page's port as AuthInterceptor judges calls: it needs a viewer. `from`
  // is the peer, as gRPC writes it. Returns the caller, or the refusal, which is counted and
  // written to the audit log.
  absl::StatusOr<Caller> AdmitPage(const Credentials& credentials, const std::string& from);
  // The tickets of the page's calls within this process, which AuthInterceptor does not see.
  PageCallers& page_callers() { return page_callers_; }
  // Implements CallAdmission for the agents' services, as AuthInterceptor does not limit agents.
  absl::Status AdmitAgent(const std::string& peer) override {
    return call_limits_.AdmitAgent(peer);
  }
  // Writes a call of an operator to the audit log, and counts it if it was not permitted.
  void RecordCall(const AuditEntry& entry);
  // Returns the processors that judge every call, one for each slot of the port; empty without TLS.
  // They must not outlive this. Several processors share one AuthInterceptor.
  std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> MakeInterceptors(
      const std::shared_ptr<PeerSlots>& slots);

  // Called once a second on the main thread. Reads the policy file if it has changed, or in any
  // case with `force`, which also opens the audit log again. An invalid policy file leaves the
  // previous rules in force (access_policy_store.h).
  void ReloadChangedFiles(bool force);
  // Called once a second on one thread.
  void PublishMetrics();

 private:
  // Moves the parts in; the authenticator refers to them.
  AccessControl(const Options& options, const Deps& deps, std::unique_ptr<AccessPolicyStore> policy,
                std::unique_ptr<AuditLog> audit, std::unique_ptr<TokenReviews> token_reviews);

  // For refusals that RecordCall counts.
  prometheus::Registry& registry_;
  // Monotonic, for limits per second.
  const Clock& clock_;
  CallLimits call_limits_;
  prometheus::Counter& audit_failures_;
  OptionalGauge policy_file_good_;
  const std::unique_ptr<AccessPolicyStore> policy_;
  const std::unique_ptr<AuditLog> audit_;
  const std::unique_ptr<TokenReviews> token_reviews_;  // null: Kubernetes tokens are not accepted
  // Refers to policy_ and token_reviews_, so it is declared after them.
  std::optional<Authenticator> authenticator_;  // empty without TLS; constant
  // Refers to all of the above. Null without TLS.
  std::shared_ptr<AuthInterceptor> interceptor_;
  PageCallers page_callers_;
};

}  // namespace neurontrace
