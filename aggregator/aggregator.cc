// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator.h"

#include <fmt/format.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "aggregator/access/kubernetes_api.h"
#include "aggregator/access/system_audit_events.h"
#include "aggregator/clocks/clock_fit_record.h"
#include "aggregator/deliver/s3_credentials.h"
#include "aggregator/operator/agents_table.h"
#include "aggregator/reference/reference_timescale.h"
#include "aggregator/session/capture_arming.h"
#include "aggregator/session/capture_request.h"
#include "lib/base/address.h"
#include "lib/base/post_and_wait.h"
#include "lib/base/status.h"
#include "lib/base/time_units.h"
#include "lib/trace/capture_limits.h"
#include "lib/trace/limits.h"
#include "lib/trace/state_words.h"
#include "lib/wire/grpc_channel.h"
#include "lib/wire/grpc_set_up.h"

namespace neurontrace {
namespace {

constexpr uint64_t kTickNs = 20'000'000;       // while a capture runs
constexpr uint64_t kIdleTickNs = 200'000'000;  // otherwise
constexpr uint64_t kMeasureIntervalNs = 1'000'000'000;
// How long writes may fail for another reason than a full disk.
constexpr uint64_t kStorePatienceNs = 10'000'000'000;
// For calls to end by themselves. What is not acknowledged by then is sent again.
constexpr std::chrono::milliseconds kShutdownPatience{500};
constexpr std::chrono::seconds kLetGoPatience{10};
// Who begins a capture is answered by what is stored now, or was a moment ago.
constexpr uint64_t kUsageAgeNs = 100'000'000;
// Workers that were not seen for so long are forgotten when their agent next connects.
constexpr uint64_t kWorkerMemoryNs = 30ull * 24 * 3600 * 1'000'000'000;

constexpr char kStoreCondition[] = "store";
constexpr char kStoreFilesCondition[] = "store files";
constexpr char kServingCondition[] = "serving";
constexpr char kSequenceCondition[] = "sequence";

// A failure to remember is no reason to stop: agents tell all of it again.
void LogIfError(const absl::Status& status) {
  if (!status.ok()) SPDLOG_WARN("{}", std::string(status.message()));
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(const AggregatorConfig& config, Random& random) {
  const std::string& path = config.store;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    const bool is_file = std::filesystem::exists(path) && !std::filesystem::is_directory(path);
    return FailedPrecondition("cannot create the store's directory {}: {}", path,
                              is_file ? "it is a file; choose a directory" : error.message());
  }
  ChunkAdmission door;
  auto store = Store::Open(path, {.examine = ExamineThrough(door),
                                  .are_clocks_final =
                                      [](std::string_view header) {
                                        const auto fit = DecodeClockFitRecord(header);
                                        return fit.ok() && fit->is_final;
                                      },
                                  .aggregator_id = fmt::format("agg-{:016x}", random.Next64()),
                                  .durability = config.durability});
  if (store.ok()) {
    for (const std::string& note : (*store)->notes()) SPDLOG_WARN("store {}: {}", path, note);
  }
  return store;
}

StatusTable CapturesTable(const Coordinator& coordinator, const StoreQuota& quota,
                          uint64_t now_realtime_ns) {
  StatusTable table{
      "Captures that run", {"capture", "kind", "state", "for", "workers", "bytes stored"}, {}};
  coordinator.ForEachRunning([&](const CaptureRecord& record) {
    const uint64_t began_ns = std::min(record.started_realtime_ns, now_realtime_ns);
    table.rows.push_back(
        {record.id.ToString(), std::string(WordsOf(record.spec.mode)),
         std::string(WordsOf(record.state)), FormatSeconds(now_realtime_ns - began_ns),
         std::to_string(Tally(record).selected), std::to_string(quota.StoredBytes(record.id))});
  });
  return table;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Aggregator>> Aggregator::Start(const AggregatorConfig& config,
                                                              const Process& process) {
  SystemRandom random;
  RETURN_IF_ERROR(CheckAggregatorConfig(config));
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(config, random));
  std::unique_ptr<Aggregator> aggregator(new Aggregator(std::move(store), config, process));
  aggregator->quota_.Set(config.quotas);
  aggregator->store_->artifacts().files().SetBytesMax(config.artifact_bytes);
  RETURN_IF_ERROR(aggregator->OpenAccess(config));
  RETURN_IF_ERROR(aggregator->Serve(config));
  return aggregator;
}

Aggregator::Aggregator(std::unique_ptr<Store> store, const AggregatorConfig& config,
                       const Process& process)
    : process_({process.log, health_, registry_, turns_, system_clock_}, ProcessOptions(config),
               MakeReloadHooks(process)),
      access_(config.access, system_clock_),
      call_limits_(clock_, *registry_, config.calls_per_second),
      security_(config.security),
      store_(std::move(store)),
      store_metrics_(*registry_, *store_, config.quotas),
      clock_steps_(*store_, clock_, RawOrigin(), *registry_),
      store_run_(MakeStoreRun(config.store, store_->aggregator_id(), random_)),
      export_roots_(config.export_roots, config.s3),
      exports_under_way_(ExportLimits()),
      watches_(WatchLimits()),
      quota_(*store_, clock_),
      reaper_(*store_, clock_),
      coordinator_({.clock = clock_,
                    .random = random_,
                    .orders = connections_,
                    .storage = *this,
                    .clocks = *this,
                    .quota = quota_,
                    .sequence = &loop_}),
      reports_(coordinator_, store_->chunks(), connections_, store_->aggregator_id(),
               MakeTriggerHooks()),
      budget_(limits::kIngestBytesInFlightMax, &ingest_metrics_),
      committer_(
          store_->chunks(), budget_, ingest_metrics_, clock_,
          [this](const absl::Status& status) { OnStoreHealth(status); },
          [this](const CaptureId& capture, const std::string& what) {
            loop_.PostTask([this, capture, what] { coordinator_.Warn(capture, what); });
          }),
      writer_(committer_),
      gateway_({loop_, reports_, connections_},
               {.door = door_,
                .submit =
                    [this](ReceivedChunk chunk, ChunkWriter::Done done) {
                      writer_.Submit(std::move(chunk), std::move(done));
                    },
                .budget = budget_,
                .metrics = ingest_metrics_},
               AdmitAgents()),
      artifact_service_(store_->artifacts(), loop_, *registry_, AdmitAgents()),
      operator_service_(MakeOperatorDeps()) {
  health_.Declare(kStoreCondition, HealthState::Severity::kReadiness, "not open");
  health_.Declare(kStoreFilesCondition, HealthState::Severity::kLiveness, "");
  health_.Declare(kServingCondition, HealthState::Severity::kReadiness, "not listening");
  health_.Watch(kSequenceCondition, HealthState::Severity::kLiveness,
                [this] { return turns_.DescribeStuck(); });
  health_.Set(kStoreCondition, true);
}

Aggregator::~Aggregator() {
  SetHandshakeListener(nullptr);
  if (standing_exports_ != nullptr) standing_exports_->End();
  if (clocks_ != nullptr) clocks_->book().Close();
  if (server_ != nullptr) {
    health_.Set(kServingCondition, false, "shutting down");
    server_->GetHealthCheckService()->Shutdown();
    connections_.EndAll();
    server_port_.reset();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
    server_->Wait();
  }
  retention_.reset();  // asks the sequence
  if (loop_thread_.joinable()) {
    loop_.Quit();
    loop_thread_.join();
  }
  process_.StopPages();
}

// A full disk passes. Damage, and a failed write of the log, stop RocksDB until it is opened again.
void Aggregator::OnStoreHealth(const absl::Status& status) {
  health_.Set(kStoreCondition, status.ok(), std::string(status.message()));
  const bool passes = status.ok() || absl::IsResourceExhausted(status);
  if (passes) {
    store_failing_since_ns_ = 0;
  } else if (store_failing_since_ns_ == 0) {
    store_failing_since_ns_ = clock_.MonotonicNs();
  }
}

// On the thread of retention. A store that has to be opened again after a full disk is only
// left when opening it can succeed: until then it can at least be read.
void Aggregator::CheckStoreHealth() {
  if (cannot_go_on_) return;
  const uint64_t since_ns = store_failing_since_ns_;
  const bool is_over = since_ns != 0 && clock_.MonotonicNs() >= since_ns + kStorePatienceNs;
  if (!is_over && !store_->must_reopen()) return;
  std::string why = "the store accepts no writes until it is reopened";
  const absl::Status disk = is_over ? absl::OkStatus() : store_->ProbeDisk();
  if (!disk.ok()) why += fmt::format(", which waits for the disk: {}", std::string(disk.message()));
  health_.Set(kStoreFilesCondition, false, why);
  if (!disk.ok()) return;
  SPDLOG_ERROR("{}: exiting with code 1; the next start repairs the damage", why);
  cannot_go_on_ = true;
}

uint64_t Aggregator::ReferenceNs() const {
  return clocks_ == nullptr ? clock_.RealtimeNs() : clocks_->timescale().NowNs();
}

std::optional<MomentOnHost> Aggregator::MomentOn(const AgentInfo& agent,
                                                 uint64_t reference_ns) const {
  return clocks_->live().MomentOn({agent.instance_id, agent.boot_id}, reference_ns);
}

void Aggregator::RefreshSoon() { clocks_->live().Refresh(); }

// Called on the sequence.
PreviewRoom Aggregator::RoomFor(const CaptureRecord& preview) {
  PreviewRoom room;
  room.store_free_bytes = quota_.FreeBytes();
  CaptureSpec spec = preview.spec;
  spec.mode = CaptureMode::kStream;
  const auto allowance =
      quota_.Admit(spec, SelectedJobs(spec, coordinator_.registry()), std::nullopt);
  if (allowance.ok()) {
    room.quota_left_bytes = allowance->bytes;
  } else {
    room.quota_left_bytes = 0;
    room.objections.emplace_back(allowance.status().message());
  }
  return room;
}

std::vector<OperatorClockBound> Aggregator::ClockBounds(const CaptureRecord& record) {
  const uint64_t now_ns = clocks_->timescale().NowNs();
  std::set<HostBoot> hosts;
  for (const CaptureWorkerStatus& status : record.workers) {
    hosts.insert({status.worker.instance_id, status.worker.boot_id});
  }
  std::vector<OperatorClockBound> bounds;
  for (const HostBoot& host : hosts) {
    const auto moment = clocks_->live().MomentOn(host, now_ns);
    if (moment) bounds.push_back({host.instance_id, moment->bound_ns});
  }
  return bounds;
}

void Aggregator::RememberAgent(const KnownAgent& agent) {
  InventoryStore& inventory = store_->inventory();
  LogIfError(inventory.PutAgent({.info = agent.info,
                                 .first_seen_realtime_ns = agent.first_seen_realtime_ns,
                                 .last_seen_realtime_ns = agent.last_seen_realtime_ns}));
  const uint64_t now_ns = clock_.RealtimeNs();
  if (agent.connection && now_ns > kWorkerMemoryNs) {
    LogIfError(inventory.PruneWorkers(agent.info.instance_id, now_ns - kWorkerMemoryNs));
  }
}

void Aggregator::RememberWorker(const std::string& agent_id, const WorkerInfo& worker) {
  InventoryStore& inventory = store_->inventory();
  const uint64_t now_ns = clock_.RealtimeNs();
  const auto known = inventory.Worker(worker.identity);
  LogIfError(inventory.PutWorker(
      {.info = worker,
       .agent_id = agent_id,
       .first_seen_realtime_ns = known.ok() ? known->first_seen_realtime_ns : now_ns,
       .last_seen_realtime_ns = now_ns}));
}

absl::Status Aggregator::RestoreSessions() {
  ASSIGN_OR_RETURN(std::vector<AgentRecord> agents, store_->inventory().Agents());
  for (AgentRecord& agent : agents) {
    coordinator_.RestoreAgent(std::move(agent.info), agent.first_seen_realtime_ns,
                              agent.last_seen_realtime_ns);
  }
  ASSIGN_OR_RETURN(std::vector<CaptureRecord> captures, store_->captures().List());
  for (CaptureRecord& capture : captures) {
    if (!HasEnded(capture.state)) SPDLOG_INFO("capture {} continues", capture.id.ToString());
    reaper_.OnCaptureEnded(capture);
    triggers_->Restore(capture);
    coordinator_.RestoreCapture(std::move(capture));
  }
  triggers_->Begin();
  return absl::OkStatus();
}

absl::Status Aggregator::RestoreClock() {
  ASSIGN_OR_RETURN(const std::vector<CaptureRecord> captures, store_->captures().List());
  const bool is_recording = std::ranges::any_of(
      captures, [](const CaptureRecord& capture) { return !HasEnded(capture.state); });
  const std::string news = clock_steps_.Begin(is_recording);
  if (!news.empty()) SPDLOG_WARN("{}", news);
  return absl::OkStatus();
}

void Aggregator::CheckClock() {
  const std::optional<std::string> news = clock_steps_.Check();
  if (!news) return;
  SPDLOG_WARN("{}", *news);
  for (const CaptureRecord& capture : coordinator_.Running()) coordinator_.Warn(capture.id, *news);
}

absl::Status Aggregator::Serve(const AggregatorConfig& config) {
  RETURN_IF_ERROR(RestoreClock());
  ASSIGN_OR_RETURN(triggers_, TriggerService::Make({config.triggers, config.trigger_posts},
                                                   {clock_, loop_, coordinator_, connections_,
                                                    *registry_, *audit_}));
  ASSIGN_OR_RETURN(clocks_,
                   ClockService::Start({.listen = config.listen,
                                        .probe_port = config.probe_port,
                                        .udp_probes = config.udp_probes,
                                        .evidence_hours = config.clock_evidence_hours,
                                        .order_checks = config.order_checks},
                                       {*store_, *registry_, random_, clock_, AdmitAgents()}));
  RETURN_IF_ERROR(MakeStandingExports(config));
  capture_audit_ = std::make_unique<CaptureAudit>(*audit_);
  for (CaptureObserver* const observer : std::initializer_list<CaptureObserver*>{
           &reaper_, standing_exports_.get(), capture_audit_.get(), &watch_, triggers_.get(),
           &metrics_}) {
    coordinator_.AddObserver(*observer);
  }
  // With the clocks, by which what was planned continues.
  RETURN_IF_ERROR(RestoreSessions());
  RETURN_IF_ERROR(process_.StartPages(config.health_address, config.health_names));
  process_.pages().AddPostPage(triggers_->MakePostPage());
  process_.AddStatusPage(loop_, [this] { return StatusTables(); });
  loop_thread_ = std::thread([this] { loop_.Run(); });
  retention_ = std::make_unique<RetentionService>(RetentionService::Deps{
      *store_, *registry_, clock_, *clocks_, clock_steps_,
      [this](const CaptureId& id) { return LetGo(id); }, [this] { RunMaintenance(); },
      [this](const Expired& expired) {
        audit_->Write(DeletedByRetention({.capture = expired.capture,
                                          .job = expired.job,
                                          .is_whole = expired.is_whole,
                                          .events = expired.events,
                                          .chunks = expired.chunks,
                                          .bytes = expired.bytes}));
      }});
  standing_exports_->Begin();
  loop_.PostTask([this] { Tick(); });
  RETURN_IF_ERROR(StartServer(config));
  health_.Set(kServingCondition, true);
  return absl::OkStatus();
}

AgentReports::TriggerHooks Aggregator::MakeTriggerHooks() {
  return {.rules = [this] { return triggers_->RulesOrder(); },
          .on_fired = [this](const std::string& agent_id,
                             const TriggerFired& fired) { triggers_->OnFired(agent_id, fired); },
          .on_status =
              [this](const std::string& agent_id, const CaptureWorkerStatus& status) {
                triggers_->OnWorkerStatus(agent_id, status);
              }};
}

void Aggregator::RefreshUsage() { LogIfError(quota_.Refresh(kUsageAgeNs)); }

void Aggregator::Tick() {
  turns_.Turn();
  coordinator_.Tick();
  triggers_->Tick();
  if (clock_.MonotonicNs() >= measured_monotonic_ns_ + kMeasureIntervalNs) {
    exports_under_way_.Look();
    watches_.Look();
    CheckClock();
    UpdateMetrics();
  }
  const bool idle = coordinator_.running() == 0;
  loop_.PostDelayedTask([this] { Tick(); }, idle ? kIdleTickNs : kTickNs);
}

bool Aggregator::LetGo(const CaptureId& capture) {
  const auto is_free = PostAndWait(loop_, "the aggregator", kLetGoPatience, [&] {
    coordinator_.Forget(capture);
    return coordinator_.FindRunning(capture) == nullptr;
  });
  return is_free.value_or(false);  // it is asked for again
}

// On the thread of retention.
void Aggregator::RunMaintenance() {
  CheckStoreHealth();
  for (const CaptureId& id : reaper_.Reap()) {
    loop_.PostTask([this, id] { coordinator_.Forget(id); });
  }
  LogIfError(quota_.Refresh(CaptureAllowance::kAgeMaxNs));
  MeasureSlowly();
}

absl::Status Aggregator::OpenTokenReviews(const AggregatorConfig& config) {
  if (!config.kubernetes_tokens) {
    if (access_.rules()->has_service_accounts()) {
      SPDLOG_WARN("{} has service-account, which matches no caller without --kubernetes-tokens",
                  config.access);
    }
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(KubernetesPod pod, KubernetesPod::Find(SystemEnvironment));
  const std::string& audience = config.kubernetes_token_audience;
  token_reviews_ = std::make_unique<TokenReviews>(
      audience,
      [api = KubernetesApi(std::move(pod), audience)](const std::string& token) {
        return api.Review(token);
      },
      system_clock_, *registry_);
  return absl::OkStatus();
}

absl::Status Aggregator::OpenAccess(const AggregatorConfig& config) {
  RETURN_IF_ERROR(access_.Load());
  const std::string audit_log =
      config.audit_log.empty() ? config.store + "/audit.log" : config.audit_log;
  ASSIGN_OR_RETURN(audit_, AuditLog::Open(audit_log, system_clock_));
  process_.DeclareCertificates();
  if (config.security.has_tls()) {
    RETURN_IF_ERROR(OpenTokenReviews(config));
    callers_ = std::make_unique<Authenticator>(access_, system_clock_, token_reviews_.get());
  } else if (!IsLoopback(config.listen)) {
    SPDLOG_WARN("{} is reachable from other machines without encryption or authentication",
                config.listen);
  }
  return absl::OkStatus();
}

// In plain text everybody is everything: it is this machine's, or was asked for.
absl::StatusOr<Caller> Aggregator::CallerOf(const grpc::ServerContext& context) const {
  if (callers_ == nullptr) return Caller{.name = "anybody", .role = Role::kAdmin};
  return callers_->Find(*context.auth_context(), context.client_metadata());
}

AdmitCall Aggregator::AdmitAgents() {
  return [this](const std::string& peer) { return call_limits_.AdmitAgent(peer); };
}

void Aggregator::NoteOrder(const AuditEntry& entry) {
  if (entry.action == "capture.start") capture_metrics_.CountAnswer(entry.outcome);
  if (absl::IsPermissionDenied(entry.outcome))
    RefusedCalls(*registry_, "not_permitted").Increment();
  audit_->Write(entry);
}

void Aggregator::ReloadChangedFiles(bool anyway) {
  process_.ReloadChangedFiles(anyway);
  access_.Look(anyway);
  if (access_.has_file()) metrics_.SetAccessFileGood(access_.is_good());
  if (anyway) audit_->Reopen();
  triggers_->LookAtFile(anyway);
}

// One for each slot; without TLS there is nobody to judge.
std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> Aggregator::MakeGuards(
    const std::shared_ptr<PeerSlots>& slots) {
  std::vector<std::shared_ptr<grpc::AuthMetadataProcessor>> guards;
  if (callers_ == nullptr) return guards;
  const auto guard = std::make_shared<AuthInterceptor>(
      AuthInterceptor::Deps{*callers_, *audit_, clock_, *registry_, call_limits_});
  for (size_t slot = 0; slot < slots->size(); ++slot) {
    guards.push_back(
        std::make_shared<SlotGuard>(guard, [slots, slot] { return slots->Describe(slot); }));
  }
  return guards;
}

// On the port's thread. Of these, too, only so many a second are written down.
void Aggregator::OnHandshakeFailed(const std::string& peer, const std::string& reason) {
  const uint64_t second = clock_.MonotonicNs() / 1'000'000'000;
  if (second != handshakes_second_) handshakes_written_ = 0;
  handshakes_second_ = second;
  if (++handshakes_written_ > limits::kRefusalsWrittenPerSecond) return;
  audit_->Write({.action = "connection",
                 .from = peer,
                 .outcome = absl::UnauthenticatedError("the TLS handshake failed: " + reason)});
}

absl::Status Aggregator::StartServer(const AggregatorConfig& config) {
  const auto slots = std::make_shared<PeerSlots>(callers_ == nullptr ? 1 : limits::kPeerSlots);
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  ConfigureServer(builder);
  ASSIGN_OR_RETURN(
      server_port_,
      ServerPort::Listen(
          {.address = config.listen,
           .descriptors_max = ServerPort::DescriptorsForConnections(),
           .refused =
               [this](ServerPort::Refusal why) {
                 (why == ServerPort::Refusal::kAddress ? metrics_.connections_refused_address
                                                       : metrics_.connections_refused_descriptors)
                     .Increment();
               },
           .crowded =
               [](const std::string& address) {
                 SPDLOG_WARN(
                     "{} has reached the limit of connections per address; further ones are closed",
                     address);
               },
           .handshake_failed = std::bind_front(&Aggregator::OnHandshakeFailed, this),
           .slots = slots}));
  SetHandshakeListener([this](std::string_view reason) {
    metrics_.handshakes_failed.Increment();
    server_port_->ReportHandshakeFailure(std::string(reason));
  });
  // With a file of access tokens may come at any time.
  server_port_->AddTo(
      builder, MakeServerCredentials(config.security, MakeGuards(slots), !config.access.empty()));
  grpc::ResourceQuota quota("aggregator");
  builder.SetResourceQuota(
      quota.Resize(limits::kGrpcBytesMax).SetMaxThreads(limits::kGrpcThreadsMax));
  builder.RegisterService(&gateway_);
  builder.RegisterService(&artifact_service_);
  builder.RegisterService(&clocks_->gateway());
  builder.RegisterService(&operator_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return Internal("gRPC does not start; see the log");
  server_port_->Start();
  address_ =
      fmt::format("{}:{}", config.listen.substr(0, config.listen.rfind(':')), server_port_->port());
  server_->GetHealthCheckService()->SetServingStatus(true);
  return absl::OkStatus();
}

DaemonProcess::Options Aggregator::ProcessOptions(const AggregatorConfig& config) {
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

ConfigReload::Hooks Aggregator::MakeReloadHooks(const Process& process) {
  return neurontrace::MakeReloadHooks<AggregatorConfig>(
      process.log, process.read_config, [this](const AggregatorConfig& config) {
        quota_.Set(config.quotas);
        store_metrics_.SetQuotas(config.quotas);
        store_->artifacts().files().SetBytesMax(config.artifact_bytes);
      });
}

std::vector<StatusTable> Aggregator::StatusTables() {
  const uint64_t now_ns = clock_.RealtimeNs();
  std::vector<StatusTable> tables;
  tables.push_back({"This aggregator",
                    {},
                    {{"id of the store", store_->aggregator_id()},
                     {"running for", FormatSeconds(clock_.MonotonicNs() - began_monotonic_ns_)},
                     {"captures in the store", std::to_string(store_->captures().size())},
                     {"bytes of the store", std::to_string(store_->bytes())},
                     {"bytes free on its disk", std::to_string(quota_.FreeBytes())}}});
  tables.push_back(AgentsTable(coordinator_.registry(), now_ns));
  tables.push_back(CapturesTable(coordinator_, quota_, now_ns));
  return tables;
}

OperatorDeps Aggregator::MakeOperatorDeps() {
  return {.sequence = loop_,
          .coordinator = coordinator_,
          .store = *store_,
          .watch = watch_,
          .clock = clock_,
          .export_capture = std::bind_front(&Aggregator::ExportForOperator, this),
          .exports = exports_under_way_,
          .watches = watches_,
          .clocks =
              [this](const CaptureRecord* capture) {
                return capture == nullptr ? clocks_->book().Now(clock_.RealtimeNs())
                                          : clocks_->OfCapture(*capture);
              },
          .host_clocks =
              [this](const CaptureRecord& capture) { return clocks_->HostsOfCapture(capture); },
          .clock_bounds = std::bind_front(&Aggregator::ClockBounds, this),
          .room_for = std::bind_front(&Aggregator::RoomFor, this),
          .list_triggers = [this] { return triggers_->List(); },
          .fire_trigger =
              [this](const v1::FireTriggerRequest& request) { return triggers_->Fire(request); },
          .refresh_usage = [this] { RefreshUsage(); },
          .claim_for_deletion =
              [this](const CaptureId& id) { return retention_->leases().ClaimForDeletion(id); },
          .caller = std::bind_front(&Aggregator::CallerOf, this),
          .audit = std::bind_front(&Aggregator::NoteOrder, this),
          .started_realtime_ns = clock_.RealtimeNs()};
}

void Aggregator::UpdateMetrics() {
  measured_monotonic_ns_ = clock_.MonotonicNs();
  const AgentRegistry& registry = coordinator_.registry();
  metrics_.agents_connected.Set(static_cast<double>(registry.connected()));
  metrics_.workers.Set(static_cast<double>(registry.workers()));
  metrics_.captures_running.Set(static_cast<double>(coordinator_.running()));
  metrics_.audit_failures.Increment(static_cast<double>(audit_->failed()) -
                                    metrics_.audit_failures.Value());
  metrics_.captures_stored.Set(static_cast<double>(store_->captures().size()));
  metrics_.chunks_damaged.Set(static_cast<double>(store_->chunks().damaged_chunks()));
  metrics_.store_bytes.Set(static_cast<double>(store_->bytes()));
  process_.Publish();
  store_metrics_.Publish();
  CanaryAges& canaries = committer_.canary_ages();
  canaries.KeepOnly(
      [this](const CaptureId& id) { return coordinator_.FindRunning(id) != nullptr; });
  // Nothing is due of who is lost: captures go on with the others.
  const uint64_t now_ns = clock_.RealtimeNs();
  canaries.ForgetLost(limits::kAgentLostForNs, measured_monotonic_ns_,
                      [&](const std::string& agent_id) {
                        return IsAwayFor(registry.Find(agent_id), limits::kAgentLostForNs, now_ns);
                      });
  metrics_.streams_live.Set(static_cast<double>(canaries.streams()));
  metrics_.SetCanaryAge(canaries.OldestNs(measured_monotonic_ns_));
}

// What asks the disk, or takes a while with many instances.
void Aggregator::MeasureSlowly() {
  store_metrics_.LookAtDisk();
  clock_bounds_.Publish(clocks_->live().BoundsAt(clocks_->ReferenceNowNs()));
  metrics_.SetSecurityEnds(EndsOf(security_));
}

// Agents that come late change one that has ended: its end is the first time that it is stored so.
absl::Status Aggregator::PutCapture(const CaptureRecord& record, bool durable) {
  const bool has_ended = HasEnded(record.state);
  bool ends = false;
  if (has_ended) {
    const auto known = store_->captures().Get(record.id);
    ends = !known.ok() || !HasEnded(known->state);
  }
  absl::Status status = store_->captures().Put(record, durable);
  OnStoreHealth(status);  // there may be no chunks that would show it
  if (ends && status.ok()) capture_metrics_.CountEnded(record.state);
  if (has_ended && status.ok()) store_->chunks().Forget(record.id);
  return status;
}

}  // namespace neurontrace
