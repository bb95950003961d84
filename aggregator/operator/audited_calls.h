// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_control.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/role.h"
#include "aggregator/operator/capture_directory.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Checks who makes a call and what the caller may do, and writes calls to the audit log. Any
// thread.
class AuditedCalls {
 public:
  // All outlive this.
  struct Deps {
    const CaptureDirectory& directory;
    const Store& store;
    AccessControl& access;
    CaptureMetrics& metrics;
  };
  explicit AuditedCalls(const Deps& deps) : deps_(deps) {}

  struct Call {
    std::string_view action;  // as the audit log names it
    std::string_view method;  // of v1.OperatorService: IsCheckedByItsHandler
    std::string capture;      // as the caller names it; empty: none yet
  };
  // Checks the caller's role, runs `act`, and writes the call to the audit log, also if it is
  // refused; counts commands to start a capture that fail. `act` completes the entry.
  grpc::Status Run(const grpc::ServerContext& context, const Call& call,
                   const std::function<absl::Status(const Caller&, AuditEntry&)>& act) const;

  // Returns the capture that `text` names, as the caller may see it. Fails with NOT_FOUND also for
  // a capture of other people. Writes a refusal to the audit log.
  absl::StatusOr<CaptureRecord> RecordFor(const grpc::ServerContext& context,
                                          const std::string& text) const;
  // For `act` of Run: adds the capture and its job to the entry.
  absl::StatusOr<CaptureRecord> RecordFor(const Caller& caller, const std::string& text,
                                          AuditEntry& entry) const;

 private:
  const Deps deps_;
};

}  // namespace neurontrace
