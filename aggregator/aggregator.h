// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/access_policy_store.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/access/auth_interceptor.h"
#include "aggregator/access/authenticator.h"
#include "aggregator/access/call_rates.h"
#include "aggregator/access/token_reviews.h"
#include "aggregator/aggregator_metrics.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/clocks/clock_steps.h"
#include "aggregator/config.h"
#include "aggregator/deliver/export_roots.h"
#include "aggregator/exports/standing_exports.h"
#include "aggregator/ingest/agent_gateway.h"
#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/artifact_service.h"
#include "aggregator/ingest/chunk_admission.h"
#include "aggregator/ingest/chunk_committer.h"
#include "aggregator/ingest/chunk_writer.h"
#include "aggregator/ingest/ingest_budget.h"
#include "aggregator/ingest/ingest_metrics.h"
#include "aggregator/operator/capture_audit.h"
#include "aggregator/operator/capture_watch.h"
#include "aggregator/operator/operator_service.h"
#include "aggregator/operator/preview_reaper.h"
#include "aggregator/retention/retention_service.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/session/session_environment.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_incarnation.h"
#include "aggregator/triggers/trigger_service.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/daemon/daemon_process.h"
#include "lib/daemon/program_log.h"
#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"
#include "lib/trace/export_limits.h"
#include "lib/wire/security_watch.h"
#include "lib/wire/server_port.h"

namespace neurontrace {

// Builds everything of one aggregator, connects it and owns it. It serves from Start to its end;
// the destructor lets calls finish for a moment, writes what was received, and closes the store.
// thread: main: waits for signals and reads changed configuration files
// thread: sequence: the sessions: captures, agents and workers as state machines
class Aggregator : private SessionStorage, private SessionClocks {
 public:
  // The process that it is in.
  struct Process {
    ProgramLog& log;  // outlives the aggregator
    // The configuration as the command line and the files say it now.
    std::function<absl::StatusOr<AggregatorConfig>()> read_config;
  };
  // Errors of the store and of the addresses, as they are said to people.
  static absl::StatusOr<std::unique_ptr<Aggregator>> Start(const AggregatorConfig& config,
                                                           const Process& process);
  ~Aggregator() override;
  Aggregator(const Aggregator&) = delete;
  Aggregator& operator=(const Aggregator&) = delete;

  // HOST:PORT, with the real port.
  const std::string& address() const { return address_; }
  int health_port() const { return process_.health_port(); }
  // UDP, of clock probes; 0: there is none.
  uint16_t probe_port() const { return clocks_->probe_port(); }
  // True when only opening the store again can make it take writes: it refused all of them for a
  // while, or could not create a file of its log and the disk has room again. The program has to
  // end so that its supervisor restarts it. The log has said why.
  bool cannot_go_on() const { return cannot_go_on_; }
  // About once a second, by the thread that started it: looks whether files of configuration have
  // changed. `anyway`: reads them in any case.
  void ReloadChangedFiles(bool anyway);

 private:
  Aggregator(std::unique_ptr<Store> store, const AggregatorConfig& config, const Process& process);

  static DaemonProcess::Options ProcessOptions(const AggregatorConfig& config);
  ConfigReload::Hooks MakeReloadHooks(const Process& process);
  OperatorDeps MakeOperatorDeps();
  void RefreshUsage();
  std::vector<StatusTable> StatusTables();

  absl::Status OpenTokenReviews(const AggregatorConfig& config);
  absl::Status OpenAccess(const AggregatorConfig& config);
  void NoteOrder(const AuditEntry& entry);
  absl::StatusOr<Caller> CallerOf(const grpc::ServerContext& context) const;
  AdmitCall AdmitAgents();
  std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> MakeGuards(
      const std::shared_ptr<PeerSlots>& slots);
  void OnHandshakeFailed(const std::string& peer, const std::string& reason);
  absl::Status StartServer(const AggregatorConfig& config);
  absl::Status RestoreClock();
  absl::Status RestoreSessions();
  absl::Status Serve(const AggregatorConfig& config);
  void Tick();
  void OnStoreHealth(const absl::Status& status);
  void CheckStoreHealth();
  void CheckClock();
  void UpdateMetrics();
  void MeasureSlowly();
  AgentReports::TriggerHooks MakeTriggerHooks();
  PreviewRoom RoomFor(const CaptureRecord& preview);
  std::vector<OperatorClockBound> ClockBounds(const CaptureRecord& record);

  // SessionStorage. PutCapture counts a capture that ends with this record.
  absl::Status PutCapture(const CaptureRecord& record, bool durable) override;
  void RememberAgent(const KnownAgent& agent) override;
  void RememberWorker(const std::string& agent_id, const WorkerInfo& worker) override;
  // SessionClocks. CLOCK_REALTIME is the reference until Serve has opened the clocks.
  uint64_t ReferenceNs() const override;
  std::optional<MomentOnHost> MomentOn(const AgentInfo& agent,
                                       uint64_t reference_ns) const override;
  void RefreshSoon() override;

  StreamingCallLimiter::Options ExportLimits();
  StreamingCallLimiter::Options WatchLimits();
  // As ExportCapture, for an operator.
  absl::Status ExportForOperator(const CaptureRecord& record, const v1::ExportRequest& request,
                                 const ExportWriter& write);
  absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest& request,
                             const ExportWriter& write);
  bool Delivers(const CaptureRecord& record, const v1::ExportRequest& request) const;
  absl::Status ExportHeld(const CaptureRecord& record, const v1::ExportRequest& request,
                          const ExportWriter& write);
  // A window before now as one of two moments; waits for what is on its way into it.
  absl::StatusOr<v1::ExportRequest> Resolve(const CaptureRecord& record,
                                            const v1::ExportRequest& request,
                                            std::vector<std::string>& notes);
  absl::StatusOr<CaptureClocks> ClocksFor(const CaptureRecord& record,
                                          const v1::ExportRequest& resolved);
  absl::Status MakeStandingExports(const AggregatorConfig& config);
  bool LetGo(const CaptureId& capture);
  void RunMaintenance();

  // In the order in which they are built; the server goes first.
  // The machine's: for certificates, tokens, the audit log, and claims that others look at.
  SystemClock system_clock_;
  SteadyClock clock_{system_clock_};  // for stamps that are stored and compared
  SystemRandom random_;
  std::shared_ptr<prometheus::Registry> registry_ = std::make_shared<prometheus::Registry>();
  AggregatorMetrics metrics_{*registry_};
  IngestMetrics ingest_metrics_{*registry_};
  CaptureMetrics capture_metrics_{*registry_};
  ExportMetrics export_metrics_{*registry_};
  ClockBoundMetrics clock_bounds_{*registry_};  // of RunMaintenance
  HealthState health_;
  EventLoop loop_;              // the coordinator's sequence
  LoopWatchdog turns_{clock_};  // of it
  DaemonProcess process_;
  AccessPolicyStore access_;
  std::unique_ptr<TokenReviews> token_reviews_;  // null: tokens of Kubernetes are not taken
  std::unique_ptr<Authenticator> callers_;  // null: calls show nobody, as they come in plain text
  std::unique_ptr<AuditLog> audit_;
  CallLimits call_limits_;
  const ChannelSecurity security_;
  std::unique_ptr<Store> store_;
  StoreMetrics store_metrics_;
  ClockSteps clock_steps_;  // Check on loop_ only
  const StoreIncarnation store_run_;
  const ExportRoots export_roots_;
  StreamingCallLimiter exports_under_way_;
  StreamingCallLimiter watches_;
  StoreQuota quota_;
  PreviewReaper reaper_;
  CaptureWatch watch_;
  AgentConnections connections_;
  Coordinator coordinator_;  // used on loop_ only, once it runs
  AgentReports reports_;
  IngestBudget budget_;
  ChunkAdmission door_;
  ChunkCommitter committer_;  // used by the writer alone
  ChunkWriter writer_;
  AgentGateway gateway_;
  ArtifactService artifact_service_;
  OperatorService operator_service_;
  std::unique_ptr<ClockService> clocks_;
  std::unique_ptr<TriggerService> triggers_;  // used on loop_ only, once it runs
  std::unique_ptr<RetentionService> retention_;
  std::unique_ptr<StandingExports> standing_exports_;
  std::unique_ptr<CaptureAudit> capture_audit_;
  std::thread loop_thread_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<ServerPort> server_port_;
  uint64_t handshakes_second_ = 0;  // of the port's thread, as the next
  uint32_t handshakes_written_ = 0;
  std::string address_;
  const uint64_t began_monotonic_ns_ = clock_.MonotonicNs();
  uint64_t measured_monotonic_ns_ = 0;  // only on loop_
  std::atomic<uint64_t> store_failing_since_ns_ =
      0;  // monotonic; 0: it does not, or the disk is full
  std::atomic<bool> cannot_go_on_ = false;
};

}  // namespace neurontrace
