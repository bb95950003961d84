// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <prometheus/registry.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "aggregator/access/access_control.h"
#include "aggregator/aggregator_metrics.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/clocks/clock_steps.h"
#include "aggregator/exports/export_service.h"
#include "aggregator/ingest/agent_connections.h"
#include "aggregator/ingest/agent_reports.h"
#include "aggregator/ingest/commit_observer.h"
#include "aggregator/ingest/ingest_service.h"
#include "aggregator/maintenance/maintenance.h"
#include "aggregator/operator/agents_table.h"
#include "aggregator/operator/capture_audit.h"
#include "aggregator/operator/capture_watch.h"
#include "aggregator/operator/operator_service.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/reference/reference_timescale.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/preview_reaper.h"
#include "aggregator/session/capture_arming.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/session/coordinator.h"
#include "aggregator/stacks/stack_collector.h"
#include "aggregator/stacks/stack_files.h"
#include "aggregator/storage/capture_metrics.h"
#include "aggregator/storage/session_store.h"
#include "aggregator/storage/storage.h"
#include "aggregator/triggers/trigger_service.h"
#include "aggregator/view/capture_insight.h"
#include "aggregator/view/digest_service.h"
#include "aggregator/view/view_service.h"
#include "aggregator/watch/live_insight.h"
#include "aggregator/web/page_service.h"
#include "lib/base/clock.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "lib/base/steady_clock.h"
#include "lib/base/time_units.h"
#include "lib/daemon/config_reload.h"
#include "lib/daemon/daemon_process.h"
#include "lib/health/health_state.h"
#include "lib/health/loop_watchdog.h"
#include "lib/trace/access_limits.h"
#include "lib/trace/limits.h"
#include "lib/trace/state_names.h"

namespace neurontrace {

namespace {

// Names of health conditions, as /readyz and /healthz show them.
constexpr char kServingCondition[] = "serving";
// Fails while the coordinator's sequence is stuck; the supervisor then restarts the program.
constexpr char kSequenceCondition[] = "sequence";

// Makes the table of running captures for /statusz. Called on the coordinator's sequence, which
// owns `coordinator`.
StatusTable CapturesTable(const Coordinator& coordinator, const StoreQuota& quota,
                          uint64_t now_realtime_ns) {
  StatusTable table{
      "Running captures", {"capture", "kind", "state", "for", "workers", "bytes stored"}, {}};
  coordinator.ForEachRunning([&](const CaptureRecord& record) {
    const uint64_t began_ns = std::min(record.started_realtime_ns, now_realtime_ns);
    table.rows.push_back(
        {record.id.ToString(), std::string(ToString(record.spec.mode)),
         std::string(ToString(record.state)), FormatSeconds(now_realtime_ns - began_ns),
         std::to_string(Tally(record).selected), std::to_string(quota.StoredBytes(record.id))});
  });
  return table;
}

// The names of the metrics are part of the documented interface (docs/operator/metrics.md).
DaemonProcess::Options ProcessOptions(const AggregatorConfig& config) {
  return {.program = "neurontrace-aggregator",
          .metrics = {.log_lines_left_out = "neurontrace_aggregator_log_lines_left_out_total",
                      .config_taken = "neurontrace_aggregator_config_reloads_total",
                      .config_refused = "neurontrace_aggregator_config_refused_total",
                      .config_good = "neurontrace_aggregator_config_valid",
                      .options_after_restart = "neurontrace_aggregator_options_after_restart",
                      .ready_condition = "neurontrace_aggregator_ready_condition",
                      .sequence_age = "neurontrace_aggregator_sequence_age_seconds"},
          .labels = {},
          .config_file = config.config_file,
          .options = config.options,
          .at_once = AggregatorOptionsAtOnce(),
          .security = config.security,
          .address = config.listen,
          .side = ChannelSide::kServer};
}

// Only limits change without a restart; see AggregatorOptionsAtOnce.
ConfigReload::Hooks ReloadHooks(const Aggregator::Process& process, Storage& storage) {
  return MakeReloadHooks<AggregatorConfig>(
      process.log, process.read_config, [&storage](const AggregatorConfig& config) {
        storage.SetLimits(config.quotas, config.artifact_bytes);
      });
}

PageService::Options PageOptions(const AggregatorConfig& config) {
  return {.address = config.view_address,
          .hosts = config.view_hosts,
          .url = config.view_url,
          .security = config.security};
}

// Without TLS callers have no names, so all count as one caller.
StreamingCallLimiter::Options WatchLimits(const Clock& clock, const AggregatorMetrics& metrics,
                                          bool has_tls) {
  return {.clock = clock,
          .what = "capture watches",
          .at_once_max = limits::kWatchesAtOnceMax,
          .of_caller_max = has_tls ? limits::kWatchesOfCallerMax : limits::kWatchesAtOnceMax,
          .refused = metrics.watches_refused,
          .unread = metrics.watches_unread};
}

}  // namespace

// What everything else is built on.
struct Aggregator::World {
  // The machine's: for certificates, tokens, the audit log, and claims that other machines compare.
  SystemClock machine_clock;
  SteadyClock clock{machine_clock};  // for timestamps that are stored and compared
  // For ids and keys, so from the kernel's generator.
  SystemRandom random;
  const std::shared_ptr<prometheus::Registry> registry = std::make_shared<prometheus::Registry>();
  HealthState health;
  // Runs on a thread of its own once Core is complete.
  EventLoop sequence;  // the coordinator's
  LoopWatchdog turns{clock};
};

// Parts that can fail to open. Each uses only those before it.
struct Aggregator::Owners {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<AccessControl> access;
  StoredSessions sessions;  // of earlier runs
  std::unique_ptr<ClockSteps> clock_steps;
  std::unique_ptr<TriggerService::RuleFile> trigger_rules;  // null: no rules
  std::unique_ptr<ClockService> clocks;
  std::unique_ptr<ExportService> exports;

  // Fails with the first error, and closes what was opened before.
  static absl::StatusOr<Owners> Open(const AggregatorConfig& config, World& world);
};

absl::StatusOr<Aggregator::Owners> Aggregator::Owners::Open(const AggregatorConfig& config,
                                                            World& world) {
  Owners owners;
  prometheus::Registry& registry = *world.registry;
  // In the order of use: the store first, since almost everything else reads it. What fails here is
  // reported before gRPC and HTTP listen.
  ASSIGN_OR_RETURN(owners.storage,
                   Storage::Open({.directory = config.store,
                                  .durability = config.durability,
                                  .quotas = config.quotas,
                                  .artifact_bytes = config.artifact_bytes},
                                 {registry, world.health, world.clock, world.random}));
  Store& store = owners.storage->store();
  ASSIGN_OR_RETURN(
      owners.access,
      AccessControl::Open(
          {.policy_file = config.access,
           .audit_log = config.audit_log.empty() ? config.store + "/audit.log" : config.audit_log,
           .listen = config.listen,
           .has_tls = config.security.has_tls(),
           .kubernetes_tokens = config.kubernetes_tokens,
           .kubernetes_token_audience = config.kubernetes_token_audience,
           .calls_per_second = config.calls_per_second},
          {registry, world.clock, world.machine_clock}));
  ASSIGN_OR_RETURN(owners.sessions, SessionStore::Read(store));
  // Before anything takes a timestamp.
  owners.clock_steps = std::make_unique<ClockSteps>(store, world.clock, RawOrigin(), registry);
  const std::string news = owners.clock_steps->Begin(owners.sessions.HasUnendedCapture());
  if (!news.empty()) SPDLOG_WARN("{}", news);
  ASSIGN_OR_RETURN(owners.trigger_rules, TriggerService::OpenRules(config.triggers, world.clock));
  ASSIGN_OR_RETURN(
      owners.clocks,
      ClockService::Start({.listen = config.listen,
                           .probe_port = config.probe_port,
                           .udp_probes = config.udp_probes,
                           .evidence_hours = config.clock_evidence_hours,
                           .order_checks = config.order_checks},
                          {store, registry, world.random, world.clock, owners.access.get()}));
  ASSIGN_OR_RETURN(
      owners.exports,
      ExportService::Open({.roots = config.export_roots,
                           .s3 = config.s3,
                           .standing_rules = config.standing_exports,
                           .store_directory = config.store,
                           .callers_have_names = config.security.has_tls()},
                          {store, *owners.storage, *owners.clocks, owners.access->audit(), registry,
                           world.clock, world.machine_clock, world.random}));
  return owners;
}

// Everything of an aggregator except its gRPC server. Complete, with its sequence running, after
// its construction.
class Aggregator::Core final : private CommitObserver {
 public:
  Core(std::unique_ptr<World> world, Owners owners, const AggregatorConfig& config,
       const Process& process);
  // Ends the threads. The server must have ended before, as its calls use everything here.
  ~Core() override;

  // Fails if the HTTP address cannot be listened on.
  absl::Status StartPages(const AggregatorConfig& config);
  // Fails if the gRPC address cannot be listened on, or the certificates cannot be used.
  absl::StatusOr<std::unique_ptr<GuardedServer>> StartServer(const AggregatorConfig& config);
  // Serves the page, whose calls go to `server`. Fails as PageService::Start does.
  absl::Status StartPage(const GuardedServer& server);
  // Called before the server ends, which the page calls.
  void StopPage() { page_.Stop(); }
  // Called before the server ends, so that nothing waits for long any more.
  void BeginShutdown();
  // Ends the calls of agents, which would otherwise stay open for ever.
  void EndAgents() { connections_.EndAll(); }
  void ReloadChangedFiles(bool force);

  // Ports are those that are in use, even if the configuration says 0.
  int health_port() const { return process_.health_port(); }
  uint16_t probe_port() const { return owners_.clocks->probe_port(); }
  std::string page_url() const { return page_.PageUrl(); }
  bool must_restart() const { return owners_.storage->must_restart(); }

 private:
  // Implement CommitObserver, on the thread of the writer.
  void OnWriteHealth(const absl::Status& status) override;
  // Adds the warning to the capture's record, on the sequence.
  void OnConflict(const CaptureId& capture, const std::string& what) override;
  void OnStored(const ReceivedChunk& chunk) override { live_insight_.OnStored(chunk); }
  // Adds the conditions of /readyz and /healthz.
  void DeclareHealth();
  // Called before Restore, so that observers miss nothing.
  void AddObservers();
  // Passes what earlier runs have stored to the coordinator, the triggers and the previews.
  void Restore();
  // On the sequence.
  std::vector<StatusTable> StatusTables();
  OperatorDeps MakeOperatorDeps();
  Maintenance::Deps MakeMaintenanceDeps();

  // Members are built in this order and destroyed in reverse; each may use those above it.
  const std::unique_ptr<World> world_;
  Owners owners_;
  // Kept for the expiry times of its files, which Maintenance exports.
  const ChannelSecurity security_;
  AggregatorMetrics metrics_{*world_->registry};
  CaptureMetrics capture_metrics_{*world_->registry};
  DaemonProcess process_;
  StreamingCallLimiter watches_;
  ViewService views_;
  CaptureInsight insight_;
  DigestService digests_;
  PreviewReaper previews_;
  ChangedRetentions changed_retentions_;
  CaptureAudit capture_audit_;
  SessionStore sessions_;
  CaptureWatch watch_;
  AgentConnections connections_;
  Coordinator coordinator_;  // used on the sequence only, once it runs
  StackFiles stack_files_;
  StackCollector stacks_;
  TriggerService triggers_;
  AgentReports reports_;
  LiveInsight live_insight_;
  IngestService ingest_;
  PageService page_;
  OperatorService operator_service_;
  const uint64_t began_monotonic_ns_;
  // Whether the last write of chunks failed. Used on the thread of the writer only.
  bool chunks_fail_ = false;
  Maintenance maintenance_;
  // Last, as tasks on it use everything above.
  std::thread sequence_thread_;
};

Aggregator::Core::Core(std::unique_ptr<World> world, Owners owners, const AggregatorConfig& config,
                       const Process& process)
    : world_(std::move(world)),
      owners_(std::move(owners)),
      security_(config.security),
      process_(
          {process.log, world_->health, world_->registry, world_->turns, world_->machine_clock},
          ProcessOptions(config), ReloadHooks(process, *owners_.storage)),
      watches_(WatchLimits(world_->clock, metrics_, security_.has_tls())),
      views_({.store = owners_.storage->store(),
              .clocks = *owners_.clocks,
              .registry = *world_->registry,
              .clock = world_->clock,
              .callers_have_names = security_.has_tls()}),
      insight_({owners_.storage->store(), *owners_.clocks, world_->clock}),
      digests_({owners_.storage->store(), *world_->registry}),
      previews_(owners_.storage->store(), world_->clock),
      capture_audit_(owners_.access->audit()),
      sessions_({*owners_.storage, world_->clock, capture_metrics_}),
      coordinator_({.clock = world_->clock,
                    .random = world_->random,
                    .orders = connections_,
                    .storage = sessions_,
                    .clocks = *owners_.clocks,
                    .quota = owners_.storage->quota(),
                    .sequence = &world_->sequence}),
      stack_files_(owners_.storage->store().artifacts(), owners_.storage->store().aggregator_id(),
                   world_->sequence),
      stacks_({.clock = world_->clock,
               .sequence = world_->sequence,
               .registry = coordinator_.registry(),
               .orders = connections_,
               .files = stack_files_,
               .audit = owners_.access->audit(),
               .metrics = *world_->registry}),
      triggers_(std::move(owners_.trigger_rules), config.trigger_posts,
                {world_->clock, world_->sequence, coordinator_, connections_, *world_->registry,
                 owners_.access->audit(), stacks_}),
      reports_(coordinator_, owners_.storage->store().chunks(), connections_,
               owners_.storage->store().aggregator_id(), &triggers_, &stacks_),
      live_insight_({.registry = *world_->registry,
                     .clock = world_->clock,
                     .clocks = *owners_.clocks,
                     .sequence = world_->sequence}),
      ingest_({.sequence = world_->sequence,
               .reports = reports_,
               .connections = connections_,
               .store = owners_.storage->store(),
               .observer = *this,
               .admission = owners_.access.get(),
               .registry = *world_->registry,
               .clock = world_->clock}),
      page_(PageOptions(config),
            {*owners_.access, *world_->registry, world_->clock, world_->random}),
      operator_service_(MakeOperatorDeps()),
      began_monotonic_ns_(world_->clock.MonotonicNs()),
      maintenance_(MakeMaintenanceDeps()) {
  DeclareHealth();
  AddObservers();
  Restore();  // before the sequence runs: until then this thread may use the coordinator
  sequence_thread_ = std::thread([this] { world_->sequence.Run(); });
  owners_.exports->standing().Begin();
}

// Called while the members are built: those above the service exist.
OperatorDeps Aggregator::Core::MakeOperatorDeps() {
  return {.sequence = world_->sequence,
          .coordinator = coordinator_,
          .triggers = triggers_,
          .stacks = stacks_,
          .store = owners_.storage->store(),
          .storage = *owners_.storage,
          .quota = owners_.storage->quota(),
          .leases = owners_.exports->leases(),
          .changed_retentions = changed_retentions_,
          .clocks = *owners_.clocks,
          .exporter = *owners_.exports,
          .exports = owners_.exports->calls(),
          .standing_exports = owners_.exports->standing(),
          .watches = watches_,
          .viewer = views_,
          .views = views_.calls(),
          .explainer = insight_,
          .live_insight = &live_insight_,
          .watch = watch_,
          .page = page_,
          .access = *owners_.access,
          .metrics = capture_metrics_,
          .clock = world_->clock,
          .started_realtime_ns = world_->clock.RealtimeNs()};
}

Maintenance::Deps Aggregator::Core::MakeMaintenanceDeps() {
  return {world_->sequence,
          world_->turns,
          coordinator_,
          triggers_,
          live_insight_,
          watches_,
          views_.calls(),
          *owners_.exports,
          *owners_.access,
          page_,
          *owners_.storage,
          previews_,
          changed_retentions_,
          ingest_.canary_ages(),
          *owners_.clocks,
          *owners_.clock_steps,
          process_,
          security_,
          *world_->registry,
          metrics_,
          world_->clock};
}

Aggregator::Core::~Core() {
  // If the server could not start, nobody has called it yet.
  BeginShutdown();
  // Verdicts and retention end first, then the sequence, then the pages, which ask the sequence.
  live_insight_.End();
  maintenance_.End();  // while the sequence runs, which it asks
  world_->sequence.Quit();
  sequence_thread_.join();
  process_.StopPages();
}

void Aggregator::Core::DeclareHealth() {
  world_->health.Declare(kServingCondition, HealthState::Severity::kReadiness, "not listening");
  world_->health.Watch(kSequenceCondition, HealthState::Severity::kLiveness,
                       [this] { return world_->turns.DescribeStuck(); });
  process_.DeclareCertificates();
}

void Aggregator::Core::AddObservers() {
  coordinator_.AddObserver(previews_);
  coordinator_.AddObserver(owners_.exports->standing());
  coordinator_.AddObserver(capture_audit_);
  coordinator_.AddObserver(watch_);
  coordinator_.AddObserver(triggers_);
  coordinator_.AddObserver(capture_metrics_);
  coordinator_.AddObserver(live_insight_);
  live_insight_.AddObserver(triggers_);
  live_insight_.AddObserver(stacks_);
}

// Orders for a moment need the clocks, which exist by now. Triggers and previews learn of captures
// before anything can happen to them.
void Aggregator::Core::Restore() {
  for (const CaptureRecord& capture : owners_.sessions.captures) {
    previews_.OnCaptureEnded(capture);
    triggers_.Restore(capture);
  }
  SessionStore::Restore(std::move(owners_.sessions), coordinator_);
  triggers_.Begin();
}

// Fails if the address is in use. The pages work before the server does, so that probes see an
// aggregator that is starting.
absl::Status Aggregator::Core::StartPages(const AggregatorConfig& config) {
  RETURN_IF_ERROR(process_.StartPages(config.health_address, config.health_names));
  process_.pages().AddPostPage(triggers_.MakePostPage());
  process_.AddStatusPage(world_->sequence, [this] { return StatusTables(); });
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<GuardedServer>> Aggregator::Core::StartServer(
    const AggregatorConfig& config) {
  // A policy file can get tokens at any time, so gRPC is set up for them.
  ASSIGN_OR_RETURN(std::unique_ptr<GuardedServer> server,
                   GuardedServer::Start({.listen = config.listen,
                                         .security = config.security,
                                         .takes_tokens = !config.access.empty()},
                                        {*owners_.access,
                                         *world_->registry,
                                         world_->clock,
                                         {&ingest_.gateway(), &ingest_.artifacts(),
                                          &owners_.clocks->gateway(), &operator_service_}}));
  world_->health.Set(kServingCondition, true);
  digests_.Begin();
  live_insight_.Begin();
  return server;
}

absl::Status Aggregator::Core::StartPage(const GuardedServer& server) {
  return page_.Start(server.MakeChannelWithin());
}

// May be called twice. Ends what could otherwise wait for long.
void Aggregator::Core::BeginShutdown() {
  owners_.exports->standing().End();
  owners_.clocks->book().Close();
  world_->health.Set(kServingCondition, false, "shutting down");
}

// Each part reports its own problems and keeps what it had.
void Aggregator::Core::ReloadChangedFiles(bool force) {
  process_.ReloadChangedFiles(force);
  owners_.access->ReloadChangedFiles(force);
  triggers_.ReloadFile(force);
  page_.ReloadChangedFiles(force);
}

// The captures keep both moments, so that a record explains what its agents delivered late.
void Aggregator::Core::OnWriteHealth(const absl::Status& status) {
  owners_.storage->RecordWrite(Storage::Written::kChunks, status);
  if (status.ok() != chunks_fail_) return;
  chunks_fail_ = !status.ok();
  const auto now_s = static_cast<std::time_t>(world_->clock.RealtimeNs() / kNsPerSecond);
  const std::string when = fmt::format("{:%F %T}Z", fmt::gmtime(now_s));
  std::string warning;
  if (chunks_fail_) {
    const auto problem = owners_.storage->write_problem();
    warning = fmt::format("the store took no data from {} on, which agents kept: {}", when,
                          std::string(status.message()));
    if (problem && problem->free_bytes) {
      warning += fmt::format(" ({} free)", BytesText(*problem->free_bytes));
    }
  } else {
    warning = fmt::format("the store took data again from {} on, also what agents had kept", when);
  }
  world_->sequence.PostTask([this, warning] { coordinator_.WarnAll(warning); });
}

void Aggregator::Core::OnConflict(const CaptureId& capture, const std::string& what) {
  world_->sequence.PostTask([this, capture, what] { coordinator_.Warn(capture, what); });
}

// Reads the coordinator, so it runs on the sequence; see AddStatusPage.
std::vector<StatusTable> Aggregator::Core::StatusTables() {
  const uint64_t now_ns = world_->clock.RealtimeNs();
  const uint64_t running_ns = world_->clock.MonotonicNs() - began_monotonic_ns_;
  const Store& store = owners_.storage->store();
  const StoreQuota& quota = owners_.storage->quota();
  std::vector<StatusTable> tables;
  tables.push_back({"This aggregator",
                    {},
                    {{"store id", store.aggregator_id()},
                     {"uptime", FormatSeconds(running_ns)},
                     {"stored captures", std::to_string(store.captures().size())},
                     {"store size in bytes", std::to_string(store.bytes())},
                     {"free disk space in bytes", std::to_string(quota.FreeBytes())}}});
  tables.push_back(AgentsTable(coordinator_.registry(), now_ns));
  tables.push_back(CapturesTable(coordinator_, quota, now_ns));
  return tables;
}

absl::StatusOr<std::unique_ptr<Aggregator>> Aggregator::Start(const AggregatorConfig& config,
                                                              const Process& process) {
  // If any step fails, what was built before is destroyed in reverse order, and the store is
  // closed.
  RETURN_IF_ERROR(CheckAggregatorConfig(config));
  auto world = std::make_unique<World>();
  ASSIGN_OR_RETURN(Owners owners, Owners::Open(config, *world));
  auto core = std::make_unique<Core>(std::move(world), std::move(owners), config, process);
  RETURN_IF_ERROR(core->StartPages(config));
  ASSIGN_OR_RETURN(std::unique_ptr<GuardedServer> server, core->StartServer(config));
  auto aggregator = std::unique_ptr<Aggregator>(new Aggregator(std::move(core), std::move(server)));
  // If this fails, the aggregator ends in the order of its destructor.
  RETURN_IF_ERROR(aggregator->core_->StartPage(*aggregator->server_));
  return aggregator;
}

// The server comes last: it may call everything else as soon as it exists.
Aggregator::Aggregator(std::unique_ptr<Core> core, std::unique_ptr<GuardedServer> server)
    : core_(std::move(core)), server_(std::move(server)) {}

Aggregator::~Aggregator() {
  // In this order: long waits end, load balancers and agents are informed, and then calls get their
  // time.
  core_->BeginShutdown();
  server_->AnnounceShutdown();
  core_->EndAgents();
  core_->StopPage();
  server_.reset();
}

// The functions below only pass calls on, because Core is not visible in the header.
int Aggregator::health_port() const { return core_->health_port(); }
uint16_t Aggregator::probe_port() const { return core_->probe_port(); }
std::string Aggregator::page_url() const { return core_->page_url(); }
bool Aggregator::must_restart() const { return core_->must_restart(); }
void Aggregator::ReloadChangedFiles(bool force) { core_->ReloadChangedFiles(force); }

}  // namespace neurontrace
