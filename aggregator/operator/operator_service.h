// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/role.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/operator/audited_calls.h"
#include "aggregator/operator/capture_describer.h"
#include "aggregator/operator/capture_directory.h"
#include "aggregator/operator/capture_watch.h"
#include "aggregator/operator/preview_message.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// Sends one reply of an export; false when nobody listens any more.
using ExportWriter = std::function<bool(const v1::ExportReply&)>;
// Exports a capture through `write`, `done` included. Runs on the thread of the call.
using ExportFunction = std::function<absl::Status(const CaptureRecord&, const v1::ExportRequest&,
                                                  const ExportWriter&)>;

// The clocks of a capture, or, without one, of the instances as they are now.
using ClocksFunction = std::function<absl::StatusOr<CaptureClocks>(const CaptureRecord* capture)>;

struct OperatorClockBound {
  std::string instance_id;
  uint64_t bound_ns = 0;
};

// What the operators' service stands on; all of it outlives the service. `coordinator` is used on
// `sequence` only.
struct OperatorDeps {
  TaskRunner& sequence;
  Coordinator& coordinator;
  Store& store;
  const CaptureWatch& watch;
  const Clock& clock;
  ExportFunction export_capture;
  StreamingCallLimiter& exports;
  StreamingCallLimiter& watches;
  ClocksFunction clocks;
  // Of a capture, without what its events tell: quick, also of one that continues.
  std::function<absl::StatusOr<CaptureClocks>(const CaptureRecord& capture)> host_clocks;
  // How well the clocks of a capture's hosts are known now. Any thread.
  std::function<std::vector<OperatorClockBound>(const CaptureRecord&)> clock_bounds;
  // On the sequence.
  std::function<PreviewRoom(const CaptureRecord&)> room_for;
  // On the sequence.
  std::function<v1::ListTriggersReply()> list_triggers;
  std::function<v1::FireTriggerReply(const v1::FireTriggerRequest&)> fire_trigger;
  // Makes what is known of the space that jobs take as good as it can be. Waits for the disk.
  std::function<void()> refresh_usage;
  // While it lives, nobody exports or deletes the capture; null where somebody does.
  std::function<std::shared_ptr<const void>(const CaptureId&)> claim_for_deletion;
  AuditedCalls::FindCaller caller;               // any thread
  std::function<void(const AuditEntry&)> audit;  // any thread
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
  explicit OperatorService(OperatorDeps deps);

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
  absl::Status Watch(grpc::ServerContext& context, const CaptureId& id,
                     grpc::ServerWriter<v1::Capture>& writer);
  void ForgetPreview(const CaptureId& id);
  absl::Status Delete(const CaptureId& id, v1::DeleteCaptureReply& reply);

  const OperatorDeps deps_;
  const SessionSequence sessions_;
  const CaptureDirectory directory_;
  const CaptureDescriber describer_;
  const AuditedCalls calls_;
};

}  // namespace neurontrace
