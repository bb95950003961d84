// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_control.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/role.h"
#include "aggregator/access/visibility.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/operator/capture_watch.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/store.h"
#include "aggregator/triggers/trigger_service.h"
#include "lib/base/clock.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/task_runner.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// What the operators' service uses; all of it outlives the service. `coordinator` and `triggers`
// are used on `sequence` only.
struct OperatorDeps {
  TaskRunner& sequence;
  Coordinator& coordinator;
  TriggerService& triggers;
  Store& store;
  StoreQuota& quota;
  ExportLeases& leases;
  ClockService& clocks;
  CaptureExporter& exporter;
  StreamingCallLimiter& exports;
  StreamingCallLimiter& watches;
  const CaptureWatch& watch;
  AccessControl& access;
  CaptureMetrics& metrics;
  const Clock& clock;
  uint64_t started_realtime_ns = 0;
};

// The service behind the command line. Each call has a thread of gRPC's to itself and may block
// it: operators are few, and those that last are StreamingCallLimiter. Calls fail with
// INVALID_ARGUMENT for what makes no sense (which names the field), RESOURCE_EXHAUSTED where too
// many last, NOT_FOUND for captures that are not there or not the caller's, FAILED_PRECONDITION for
// what cannot be done now, PERMISSION_DENIED for captures to begin of jobs that are not the
// caller's. A caller whose rule has jobs, namespaces or users gets replies that name nobody else's
// workers, jobs, captures and rules. What begins, ends, deletes or takes something out is written
// to the audit log with its outcome.
class OperatorService final : public v1::OperatorService::Service {
 public:
  explicit OperatorService(OperatorDeps deps) : deps_(std::move(deps)) {}

  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override;
  grpc::Status ListAgents(grpc::ServerContext* context, const v1::ListAgentsRequest*,
                          v1::ListAgentsReply* reply) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersReply* reply) override;
  grpc::Status ListClocks(grpc::ServerContext* context, const v1::ListClocksRequest* request,
                          v1::ListClocksReply* reply) override;
  grpc::Status StartCapture(grpc::ServerContext* context, const v1::StartCaptureRequest* request,
                            v1::Capture* reply) override;
  grpc::Status StopCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                           v1::Capture* reply) override;
  grpc::Status WatchCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                            grpc::ServerWriter<v1::Capture>* writer) override;
  grpc::Status ListCaptures(grpc::ServerContext* context, const v1::ListCapturesRequest*,
                            v1::ListCapturesReply* reply) override;
  grpc::Status GetCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                          v1::Capture* reply) override;
  grpc::Status DeleteCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                             v1::DeleteCaptureReply* reply) override;
  grpc::Status ListTriggers(grpc::ServerContext* context, const v1::ListTriggersRequest*,
                            v1::ListTriggersReply* reply) override;
  grpc::Status FireTrigger(grpc::ServerContext* context, const v1::FireTriggerRequest* request,
                           v1::FireTriggerReply* reply) override;
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override;

 private:
  struct AuditedCall {
    std::string_view action;  // as the audit log names it
    std::string_view method;  // of this service: IsCheckedByItsHandler
    std::string capture;      // as the caller names it; empty: there is none yet
  };
  // Checks the caller's role, runs what they ask and writes it down, also if it is refused; `act`
  // completes the entry.
  grpc::Status Audited(const grpc::ServerContext& context, const AuditedCall& call,
                       const std::function<absl::Status(const Caller&, AuditEntry&)>& act);
  // Among the captures that the caller may see.
  absl::StatusOr<CaptureId> Find(const Caller& caller, const std::string& text);
  // A capture whose record cannot be read is not seen by callers with limits.
  MaySeeCapture CapturesSeenBy(const Caller& caller);
  // The record without other people's workers and jobs.
  CaptureRecord AsSeenBy(const Caller& caller, CaptureRecord record);
  // Describe or DescribeFully, without what the caller may not see.
  enum class Extent { kBrief, kFull };
  absl::StatusOr<v1::Capture> DescribeTo(const Caller& caller, CaptureRecord record, Extent extent);
  // As it is now, running or ended.
  absl::StatusOr<CaptureRecord> Record(const CaptureId& id);
  // The capture of this name, if it is one of the caller's, as the caller may see it.
  absl::StatusOr<CaptureRecord> RecordFor(const grpc::ServerContext& context,
                                          const std::string& text);
  absl::StatusOr<CaptureRecord> RecordFor(const Caller& caller, const std::string& text,
                                          AuditEntry& entry);
  absl::Status Delete(const CaptureId& id, v1::DeleteCaptureReply& reply);
  absl::StatusOr<v1::Capture> Describe(const CaptureRecord& record) const;
  // Of a preview, which has no streams to be judged by.
  absl::StatusOr<v1::Capture> DescribePreview(const CaptureRecord& record) const;
  void ForgetPreview(const CaptureId& id);
  // Of a standing capture that awaits its first worker: what there is instead.
  absl::Status AddNoWorkerWarning(const CaptureRecord& record, v1::Capture& message) const;
  // With its streams and its whole certificate.
  absl::StatusOr<v1::Capture> DescribeFully(const CaptureRecord& record) const;
  absl::Status Watch(grpc::ServerContext& context, const CaptureId& id,
                     grpc::ServerWriter<v1::Capture>& writer);

  // Runs `function` on `sequence`, see PostAndWait.
  static constexpr std::chrono::seconds kSessionsTimeout{10};
  template <typename Function>
  auto OnSequence(Function function) const {
    return PostAndWait(deps_.sequence, "the aggregator's sessions", kSessionsTimeout,
                       std::move(function));
  }

  const OperatorDeps deps_;
};

}  // namespace neurontrace
