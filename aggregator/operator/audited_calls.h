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
// thread; waits for the coordinator's sequence and the disk.
class AuditedCalls {
 public:
  // All of them must outlive this.
  struct Deps {
    const CaptureDirectory& directory;
    const Store& store;
    AccessControl& access;
    CaptureMetrics& metrics;
  };
  explicit AuditedCalls(const Deps& deps) : deps_(deps) {}

  // What Run needs to know about a call. The views must outlive the call of Run.
  struct Call {
    std::string_view action;  // its name in the audit log
    std::string_view method;  // of v1.OperatorService, see IsCheckedByItsHandler
    std::string capture;      // as the caller names it; empty: none so far
  };
  // Checks the caller's role, runs `act`, and writes the call to the audit log, even if it is
  // refused. Counts commands to start a capture that fail. `act` completes the entry; its error,
  // without what the caller may not see, is the answer.
  grpc::Status Run(const grpc::ServerContext& context, const Call& call,
                   const std::function<absl::Status(const Caller&, AuditEntry&)>& act) const;

  // Returns the capture that `text` names, as the caller may see it. Fails with NOT_FOUND if there
  // is none, and also if it belongs to somebody else, so that its existence is not revealed. Writes
  // such a refusal to the audit log.
  absl::StatusOr<CaptureRecord> RecordFor(const grpc::ServerContext& context,
                                          const std::string& text) const;
  // Does the same for `act` of Run: adds the capture and its job to the entry.
  absl::StatusOr<CaptureRecord> RecordFor(const Caller& caller, const std::string& text,
                                          AuditEntry& entry) const;

 private:
  // Constant, so calls on several threads need no lock.
  const Deps deps_;
};

}  // namespace neurontrace
