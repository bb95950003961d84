// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "aggregator/access/access_control.h"
#include "aggregator/access/role.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/operator/audited_calls.h"
#include "aggregator/operator/capture_artifacts.h"
#include "aggregator/operator/capture_describer.h"
#include "aggregator/operator/capture_directory.h"
#include "aggregator/operator/capture_explainer.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/operator/capture_updater.h"
#include "aggregator/operator/capture_viewer.h"
#include "aggregator/operator/capture_watch.h"
#include "aggregator/operator/live_insight.h"
#include "aggregator/operator/page_address.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/operator/standing_export_lister.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/stacks/stack_collector.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/storage/storage.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/store.h"
#include "aggregator/triggers/trigger_service.h"
#include "lib/base/clock.h"
#include "lib/base/task_runner.h"
#include "neurontrace/v1/operator_service.grpc.pb.h"

namespace neurontrace {

// What the service uses; all of it must outlive the service. `coordinator` and `triggers` are used
// on `sequence` only.
struct OperatorDeps {
  // The coordinator's sequence; handlers post to it and wait.
  TaskRunner& sequence;
  Coordinator& coordinator;
  TriggerService& triggers;
  StackCollector& stacks;
  Store& store;
  const Storage& storage;  // of that store
  StoreQuota& quota;
  ExportLeases& leases;
  ChangedRetentions& changed_retentions;
  ClockService& clocks;
  CaptureExporter& exporter;
  StreamingCallLimiter& exports;
  const StandingExportLister& standing_exports;
  StreamingCallLimiter& watches;
  CaptureViewer& viewer;
  StreamingCallLimiter& views;
  CaptureExplainer& explainer;
  LiveInsightSource* live_insight = nullptr;  // nullptr: this aggregator has no watch
  const CaptureWatch& watch;
  const PageAddress& page;
  AccessControl& access;
  CaptureMetrics& metrics;
  const Clock& clock;
  uint64_t started_realtime_ns = 0;
};

// The service behind the command line. Each call has one of gRPC's threads to itself and may block
// it: operators are few, and long calls are limited by StreamingCallLimiter.
//
// Calls fail with INVALID_ARGUMENT for invalid fields, which the message names. They fail with
// RESOURCE_EXHAUSTED beyond a limit, and with NOT_FOUND for captures that do not exist or are not
// the caller's. They fail with FAILED_PRECONDITION for what cannot be done now, and with
// PERMISSION_DENIED for new captures of jobs that are not the caller's.
//
// A caller whose rule has jobs, namespaces or users gets replies that name nobody else's workers,
// jobs, captures and rules. Calls that start, end, change, delete or export something are written
// to the audit log with their outcome.
class OperatorService final : public v1::OperatorService::Service {
 public:
  // Builds the helpers below from `deps`. Serves once it is registered with a server.
  explicit OperatorService(const OperatorDeps& deps);

  // Calls that only read.
  grpc::Status GetStatus(grpc::ServerContext* context, const v1::GetStatusRequest*,
                         v1::GetStatusReply* reply) override;
  grpc::Status ListAgents(grpc::ServerContext* context, const v1::ListAgentsRequest*,
                          v1::ListAgentsReply* reply) override;
  // Lists workers of an instance or a job, and the ranks that they claim.
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersReply* reply) override;
  grpc::Status ListClocks(grpc::ServerContext* context, const v1::ListClocksRequest* request,
                          v1::ListClocksReply* reply) override;
  // Calls that start or stop something. Both return the capture as the caller may see it.
  grpc::Status StartCapture(grpc::ServerContext* context, const v1::StartCaptureRequest* request,
                            v1::Capture* reply) override;
  grpc::Status StopCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                           v1::Capture* reply) override;
  // Streams the capture until it has ended or the client is gone. Fails with RESOURCE_EXHAUSTED if
  // too many watches are open.
  grpc::Status WatchCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                            grpc::ServerWriter<v1::Capture>* writer) override;
  // Lists every capture that the caller may see, running or stored, in brief.
  grpc::Status ListCaptures(grpc::ServerContext* context, const v1::ListCapturesRequest*,
                            v1::ListCapturesReply* reply) override;
  // Describes one capture in full, with its streams and certificate.
  grpc::Status GetCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                          v1::Capture* reply) override;
  // Fails with FAILED_PRECONDITION while the capture runs or is being exported.
  grpc::Status DeleteCapture(grpc::ServerContext* context, const v1::CaptureReference* request,
                             v1::DeleteCaptureReply* reply) override;
  // Changes the name, the star, the tags and the retention of a capture, running or ended. Fails as
  // CaptureUpdate::Check and CaptureUpdater::Update do. A shorter retention needs the role that
  // DeleteCapture needs.
  grpc::Status UpdateCapture(grpc::ServerContext* context, const v1::UpdateCaptureRequest* request,
                             v1::Capture* reply) override;
  // Lists the rules, the history of each, and why a rule cannot fire.
  grpc::Status ListTriggers(grpc::ServerContext* context, const v1::ListTriggersRequest*,
                            v1::ListTriggersReply* reply) override;
  // Needs a caller without limits to jobs.
  grpc::Status FireTrigger(grpc::ServerContext* context, const v1::FireTriggerRequest* request,
                           v1::FireTriggerReply* reply) override;
  // Streams the files, or writes them to a destination and streams the progress. The aggregator's
  // own destinations need the role operator.
  grpc::Status Export(grpc::ServerContext* context, const v1::ExportRequest* request,
                      grpc::ServerWriter<v1::ExportReply>* writer) override;
  // Lists the rules of the jobs that the caller may see.
  grpc::Status ListStandingExports(grpc::ServerContext* context,
                                   const v1::ListStandingExportsRequest*,
                                   v1::ListStandingExportsReply* reply) override;
  grpc::Status ListArtifacts(grpc::ServerContext* context, const v1::CaptureReference* request,
                             v1::ListArtifactsReply* reply) override;
  // Streams one artifact. Counts as an export, and is written to the audit log as artifact.read.
  grpc::Status GetArtifact(grpc::ServerContext* context, const v1::GetArtifactRequest* request,
                           grpc::ServerWriter<v1::GetArtifactReply>* writer) override;
  // Streams one answer of the page in parts. Fails with RESOURCE_EXHAUSTED if too many are being
  // made.
  grpc::Status GetView(grpc::ServerContext* context, const v1::ViewRequest* request,
                       grpc::ServerWriter<v1::ViewReply>* writer) override;
  // Says which ranks of a capture are slow or hung; without a capture, those of the running watch.
  // Of a capture it reads every event of the window, and counts as an export. Fails with
  // FAILED_PRECONDITION if no watch is on.
  grpc::Status Explain(grpc::ServerContext* context, const v1::ExplainRequest* request,
                       v1::InsightReport* reply) override;
  // The same of a capture, with progress. Fails with INVALID_ARGUMENT without a capture.
  grpc::Status ExplainCapture(grpc::ServerContext* context, const v1::ExplainRequest* request,
                              grpc::ServerWriter<v1::ExplainReply>* writer) override;
  // Asks for the stacks of workers of a capture, or of the watch, and returns at once. Fails with
  // NOT_FOUND if none is selected, and as StackCollector::Collect does.
  grpc::Status CollectStacks(grpc::ServerContext* context, const v1::CollectStacksRequest* request,
                             v1::GetStacksReply* reply) override;
  // Returns the newest stacks of each job of a capture that the caller may see.
  grpc::Status GetStacks(grpc::ServerContext* context, const v1::CaptureReference* request,
                         v1::GetStacksReply* reply) override;

 private:
  // Sends the capture whenever it changes until it has ended.
  absl::Status Watch(grpc::ServerContext& context, const CaptureId& id,
                     grpc::ServerWriter<v1::Capture>& writer);
  // Deletes a preview whose result was sent, as nothing else needs it.
  void ForgetPreview(const CaptureId& id);
  // Answers for one capture, with progress to `writer` unless it is null, and for the watch.
  absl::Status ExplainStored(grpc::ServerContext& context, const v1::ExplainRequest& request,
                             grpc::ServerWriter<v1::ExplainReply>* writer,
                             v1::InsightReport& report);
  absl::Status ExplainWatch(const Caller& caller, const v1::ExplainRequest& request,
                            v1::InsightReport& reply);
  // Adds the newest stacks of a capture to an answer, of this job or all, as far as the caller may
  // see them.
  absl::Status AddStacks(const Caller& caller, const CaptureId& capture, const std::string& job,
                         google::protobuf::RepeatedPtrField<v1::StacksReport>& stacks);
  // Returns the watch that records workers of the job, the newest of several.
  absl::StatusOr<CaptureRecord> RunningWatch(const std::string& job) const;
  // Deletes an ended capture that nobody exports.
  absl::Status Delete(const CaptureId& id, v1::DeleteCaptureReply& reply);

  // Constant after construction, so handlers on several threads need no lock.
  const OperatorDeps deps_;
  const SessionSequence sessions_;
  const CaptureDirectory directory_;
  const CaptureDescriber describer_;
  const CaptureUpdater updater_;
  const CaptureArtifacts artifacts_;
  const AuditedCalls calls_;
};

}  // namespace neurontrace
