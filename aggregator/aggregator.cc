// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "aggregator/capture_export.h"
#include "base/status.h"
#include "trace/limits.h"
#include "wire/grpc_channel.h"

namespace neurontrace {
namespace {

constexpr uint64_t kTickNs = 20'000'000;       // while a capture runs
constexpr uint64_t kIdleTickNs = 200'000'000;  // otherwise
constexpr uint64_t kMeasureIntervalNs = 1'000'000'000;
// How long writes may fail for another reason than a full disk.
constexpr uint64_t kStorePatienceNs = 10'000'000'000;
// For calls to end by themselves. What is not acknowledged by then is sent again.
constexpr std::chrono::milliseconds kShutdownPatience{500};
// Workers that were not seen for so long are forgotten when their agent next connects.
constexpr uint64_t kWorkerMemoryNs = 30ull * 24 * 3600 * 1'000'000'000;

constexpr char kStoreCondition[] = "store";
constexpr char kStoreFilesCondition[] = "store files";
constexpr char kServingCondition[] = "serving";

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
    return FailedPrecondition("the store's directory {} cannot be made: {}", path,
                              is_file ? "it is a file: name a directory" : error.message());
  }
  ChunkDoor door;
  auto store = Store::Open(path, {.examine = ExamineThrough(door),
                                  .aggregator_id = fmt::format("agg-{:016x}", random.Next64()),
                                  .durability = config.durability});
  if (store.ok()) {
    for (const std::string& note : (*store)->notes()) SPDLOG_WARN("store {}: {}", path, note);
  }
  return store;
}

// What who exports a capture right after its end is to know; empty: nothing.
std::string NoteOf(const CaptureRecord& record, const CaptureClocks& clocks, uint64_t now_ns) {
  if (!HasEnded(record.state) || clocks.instances.empty() || clocks.is_final) return {};
  const uint64_t final_ns = ClockBook::FinalAtNs(record);
  if (clocks.version == 0 || now_ns >= final_ns) return {};
  constexpr uint64_t kSecondNs = 1'000'000'000;
  return fmt::format(
      "the models of the clocks are not final yet: an export in {} s has the best "
      "bounds",
      (final_ns - now_ns) / kSecondNs + 1);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Aggregator>> Aggregator::Start(const AggregatorConfig& config) {
  SystemRandom random;
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(config, random));
  std::unique_ptr<Aggregator> aggregator(new Aggregator(std::move(store)));
  RETURN_IF_ERROR(aggregator->RestoreSessions());
  RETURN_IF_ERROR(aggregator->Serve(config));
  return aggregator;
}

Aggregator::Aggregator(std::unique_ptr<Store> store)
    : store_(std::move(store)),
      coordinator_(clock_, random_, MakeOutputs()),
      reports_(coordinator_, store_->chunks(), connections_, store_->aggregator_id()),
      budget_(limits::kIngestBytesInFlightMax),
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
               clock_),
      operator_service_(
          {.sequence = loop_,
           .coordinator = coordinator_,
           .store = *store_,
           .watch = watch_,
           .clock = clock_,
           .export_capture =
               [this](const auto& record, const auto& request, const auto& write) {
                 return ExportCapture(record, request, write);
               },
           .clocks =
               [this](const CaptureRecord* capture) {
                 return capture == nullptr ? clocks_->book().Now(clock_.RealtimeNs())
                                           : clocks_->OfCapture(*capture);
               },
           .host_clocks =
               [this](const CaptureRecord& capture) { return clocks_->HostsOfCapture(capture); },
           .started_realtime_ns = clock_.RealtimeNs()}) {
  health_.Declare(kStoreCondition, HealthState::Severity::kReadiness, "not open");
  health_.Declare(kStoreFilesCondition, HealthState::Severity::kLiveness, "");
  health_.Declare(kServingCondition, HealthState::Severity::kReadiness, "not listening");
  health_.Set(kStoreCondition, true);
}

Aggregator::~Aggregator() {
  if (clocks_ != nullptr) clocks_->book().Close();
  if (server_ != nullptr) {
    health_.Set(kServingCondition, false, "shutting down");
    server_->GetHealthCheckService()->Shutdown();
    connections_.EndAll();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownPatience);
    server_->Wait();
  }
  if (loop_thread_.joinable()) {
    loop_.Quit();
    loop_thread_.join();
  }
}

// A full disk passes. Damage, and a failed write of the log, stop RocksDB until it is opened anew.
void Aggregator::OnStoreHealth(const absl::Status& status) {
  health_.Set(kStoreCondition, status.ok(), std::string(status.message()));
  const bool passes = status.ok() || absl::IsResourceExhausted(status);
  if (passes) {
    store_failing_since_ns_ = 0;
  } else if (store_failing_since_ns_ == 0) {
    store_failing_since_ns_ = clock_.MonotonicNs();
  }
}

void Aggregator::LookAtStore() {
  const uint64_t since_ns = store_failing_since_ns_;
  if (since_ns == 0 || clock_.MonotonicNs() < since_ns + kStorePatienceNs || cannot_go_on_) return;
  constexpr char kWhy[] = "the store takes no writes and has to be opened anew";
  SPDLOG_ERROR("{}: ending; start it again, which repairs what is damaged", kWhy);
  health_.Set(kStoreFilesCondition, false, kWhy);
  cannot_go_on_ = true;
}

CoordinatorOutputs Aggregator::MakeOutputs() {
  return {
      .send = [this](const std::string&, ConnectionId connection,
                     const CaptureOrder& order) { connections_.Send(connection, ToOrder(order)); },
      .persist =
          [this](const CaptureRecord& record, bool durable) {
            const absl::Status status = store_->captures().Put(record, durable);
            OnStoreHealth(status);  // there may be no chunks that would show it
            if (status.ok() && HasEnded(record.state)) store_->chunks().Forget(record.id);
            if (status.ok() && HasEnded(record.state) && durable) {
              SPDLOG_INFO("capture {} ended {} with {} warnings", record.id.ToString(),
                          record.state == CaptureState::kComplete ? "complete" : "incomplete",
                          record.warnings.size() + record.end_warnings.size());
            }
            return status;
          },
      .changed = [this](const CaptureRecord&) { watch_.Changed(); },
      .agent_changed = [this](const KnownAgent& agent) { RememberAgent(agent); },
      .worker_changed = [this](const std::string& agent_id,
                               const WorkerInfo& worker) { RememberWorker(agent_id, worker); }};
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
    if (!HasEnded(capture.state)) SPDLOG_INFO("capture {} goes on", capture.id.ToString());
    coordinator_.RestoreCapture(std::move(capture));
  }
  return absl::OkStatus();
}

absl::Status Aggregator::Serve(const AggregatorConfig& config) {
  ASSIGN_OR_RETURN(clocks_, ClockService::Start(config, {*store_, *registry_, random_, clock_}));
  ASSIGN_OR_RETURN(health_server_, HealthServer::Start(config.health_address, registry_, health_));
  loop_thread_ = std::thread([this] { loop_.Run(); });
  loop_.PostTask([this] { Tick(); });

  if (!IsLoopback(config.listen)) {
    SPDLOG_WARN("{} is reached from other machines, without encryption or authentication",
                config.listen);
  }
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  int port = 0;
  ConfigureServer(builder, config.listen, {}, &port);
  grpc::ResourceQuota quota("aggregator");
  builder.SetResourceQuota(quota.Resize(limits::kGrpcBytesMax));
  builder.RegisterService(&gateway_);
  builder.RegisterService(&clocks_->gateway());
  builder.RegisterService(&operator_service_);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    return FailedPrecondition(
        "cannot listen on {}: is another program there, or is it no address of this machine?",
        config.listen);
  }
  address_ = fmt::format("{}:{}", config.listen.substr(0, config.listen.rfind(':')), port);
  server_->GetHealthCheckService()->SetServingStatus(true);
  health_.Set(kServingCondition, true);
  return absl::OkStatus();
}

void Aggregator::Tick() {
  coordinator_.Tick();
  if (clock_.MonotonicNs() >= measured_monotonic_ns_ + kMeasureIntervalNs) UpdateMetrics();
  const bool idle = coordinator_.Running().empty();
  loop_.PostDelayedTask([this] { Tick(); }, idle ? kIdleTickNs : kTickNs);
}

void Aggregator::UpdateMetrics() {
  LookAtStore();
  measured_monotonic_ns_ = clock_.MonotonicNs();
  const AgentRegistry& registry = coordinator_.registry();
  metrics_.agents_connected.Set(static_cast<double>(registry.connected()));
  metrics_.workers.Set(static_cast<double>(registry.workers()));
  metrics_.captures_running.Set(static_cast<double>(coordinator_.Running().size()));
  metrics_.captures_stored.Set(static_cast<double>(store_->captures().size()));
  metrics_.chunks_damaged.Set(static_cast<double>(store_->chunks().damaged_chunks()));
  metrics_.store_bytes.Set(static_cast<double>(store_->bytes()));
  CanaryAges& canaries = committer_.canary_ages();
  canaries.KeepOnly(
      [this](const CaptureId& id) { return coordinator_.FindRunning(id) != nullptr; });
  metrics_.streams_live.Set(static_cast<double>(canaries.streams()));
  metrics_.SetCanaryAge(canaries.OldestNs(measured_monotonic_ns_));
}

absl::Status Aggregator::ExportCapture(const CaptureRecord& record,
                                       const v1::ExportRequest& request,
                                       const ExportWriter& write) {
  metrics_.exports.Increment();
  const auto clocks = clocks_->OfCapture(record);
  const std::string note = clocks.ok() && !request.raw_clocks()
                               ? NoteOf(record, *clocks, clock_.RealtimeNs())
                               : std::string();
  const auto write_with_note = [&](const v1::ExportReply& reply) {
    if (!reply.has_done() || note.empty()) return write(reply);
    v1::ExportReply noted = reply;
    noted.mutable_done()->add_notes(note);
    return write(noted);
  };
  const absl::Status status =
      clocks.ok() ? ExportStoredCapture(*store_, record, request, *clocks, write_with_note)
                  : clocks.status();
  if (!status.ok()) metrics_.exports_failed.Increment();
  return status;
}

}  // namespace neurontrace
