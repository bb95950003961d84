// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/authenticator.h"
#include "aggregator/access/call_limits.h"
#include "aggregator/access/role.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace neurontrace {

// Judges every call of every service on connections with TLS. A caller that is unknown, not
// permitted or too frequent is refused before the call's message is read. Calls that
// IsCheckedByItsHandler names pass whatever role their caller has, because only their handler knows
// which capture to name in the audit log. Any thread. Runs before any handler;
// docs/operator/security.md has the rules.
class AuthInterceptor final {
 public:
  // All of them must outlive this.
  struct Deps {
    const Authenticator& callers;
    AuditLog& audit;
    const Clock& clock;
    prometheus::Registry& registry;
    CallLimits& limits;
  };
  // Creates one counter for each reason of a refusal.
  explicit AuthInterceptor(const Deps& deps);

  using Metadata = grpc::AuthMetadataProcessor::InputMetadata;
  // Returns whether Process can wait for the API server.
  bool can_wait() const { return deps_.callers.can_wait(); }
  // Judges one call. Returns OK for a call that may continue, or the refusal, whose message says
  // what to do. A refusal is counted and, up to a limit, written to the audit log. `from` returns
  // the peer's address for that log and is only called for a refusal. gRPC shares `context` among
  // all calls of a connection, so nothing about one call is stored in it; handlers ask
  // Authenticator again.
  grpc::Status Process(const Metadata& metadata, const grpc::AuthContext& context,
                       const std::function<std::string()>& from);
  // Does the same for a request at the page's port, and returns its caller. `call` is the path of a
  // call that needs the same role.
  absl::StatusOr<Caller> Admit(const Credentials& credentials, std::string_view call,
                               const std::string& from);

 private:
  // Returns why the call is refused, or OK; fills `entry` with what is known of it.
  absl::Status Judge(const Metadata& metadata, const grpc::AuthContext& context,
                     AuditEntry& entry) const;
  // Checks the role and the rate of a known caller. Fills `entry`.
  absl::Status JudgeCaller(const Caller& caller, std::string_view call, AuditEntry& entry) const;
  // Counts a refusal, and writes it to the audit log, if that is not flooded.
  void RecordRefusal(AuditEntry entry, const std::function<std::string()>& from);
  // Returns the counter for the reason of a refusal.
  prometheus::Counter& CounterOf(const absl::Status& refusal);
  // Limits how many refusals per second are written: they must not displace what was done.
  bool CanWrite();

  const Deps deps_;
  // One for each label `reason` of neurontrace_aggregator_calls_refused_total.
  prometheus::Counter& refused_unknown_;
  prometheus::Counter& refused_role_;
  prometheus::Counter& refused_rate_;
  prometheus::Counter& refused_unsure_;
  // Guards the count of lines in the current second.
  Mutex mutex_;
  uint64_t second_ NT_GUARDED_BY(mutex_) = 0;
  uint32_t written_in_second_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
