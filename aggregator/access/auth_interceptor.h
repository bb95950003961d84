// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "aggregator/access/audit_log.h"
#include "aggregator/access/authenticator.h"
#include "aggregator/access/call_rates.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/wire/peer_slots.h"

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
  bool may_wait() const { return deps_.callers.may_wait(); }
  // Judges one call. Returns OK for a call that may continue, or the refusal, whose message says
  // what to do. A refusal is counted and, up to a limit, written to the audit log. `from` returns
  // the peer's address for that log and is only called for a refusal. gRPC shares `context` among
  // all calls of a connection, so nothing about one call is stored in it; handlers ask
  // Authenticator again.
  grpc::Status Process(const Metadata& metadata, const grpc::AuthContext& context,
                       const std::function<std::string()>& from);

 private:
  // Returns why the call is refused, or OK; fills `entry` with what is known of it.
  absl::Status Judge(const Metadata& metadata, const grpc::AuthContext& context,
                     AuditEntry& entry) const;
  // Returns the counter for the reason of a refusal.
  prometheus::Counter& CounterOf(const absl::Status& refusal);
  // Limits how many refusals per second are written: they must not displace what was done.
  bool MayWrite();

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

// An AuthInterceptor for the connections of one slot of a port (see lib/wire/peer_slots.h).
class SlotGuard final : public grpc::AuthMetadataProcessor {
 public:
  // `slots` knows the address of the peer in `slot`.
  SlotGuard(std::shared_ptr<AuthInterceptor> guard, std::shared_ptr<const PeerSlots> slots,
            size_t slot)
      : guard_(std::move(guard)), slots_(std::move(slots)), slot_(slot) {}

  // Returns whether gRPC judges calls on threads of its own that may wait, one call on each.
  // Without Kubernetes tokens a judgement takes microseconds and runs on gRPC's own threads.
  bool IsBlocking() const override { return guard_->may_wait(); }
  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context, OutputMetadata*,
                       OutputMetadata*) override {
    return guard_->Process(metadata, *context, [this] { return slots_->Describe(slot_); });
  }

 private:
  const std::shared_ptr<AuthInterceptor> guard_;
  const std::shared_ptr<const PeerSlots> slots_;
  const size_t slot_;
};

}  // namespace neurontrace
