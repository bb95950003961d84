// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/sim_aggregator.h"

#include <map>
#include <utility>

#include "aggregator/ingest/chunk_admission.h"
#include "lib/base/status.h"
#include "lib/wire/chunk_envelope.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kTickNs = 20'000'000;
constexpr uint64_t kStorePatienceNs = 10'000'000'000;

absl::Status FromGrpcStatus(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

absl::StatusOr<std::unique_ptr<Store>> OpenStore(rocksdb::Env* env, ChunkAdmission& door) {
  return Store::Open(SimAggregator::kStorePath,
                     {.env = env, .examine = ExamineThrough(door), .aggregator_id = "agg-sim"});
}

}  // namespace

CrashDisk::Contents SimAggregator::NewStore() {
  ChunkAdmission door;
  CrashDisk disk(0, "", {});
  OpenStore(disk.Open(), door).status().IgnoreError();  // closed at once
  return disk.Read(kStorePath);
}

absl::StatusOr<std::unique_ptr<SimAggregator>> SimAggregator::Start(SimWorld& world,
                                                                    SimLedger& ledger,
                                                                    rocksdb::Env* env,
                                                                    const Options& options) {
  ChunkAdmission door;
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(env, door));
  for (const std::string& note : store->notes()) {
    world.trace.Log("store: {}", note);
    if (note.starts_with("rebuilt")) {
      world.trace.Violate("a crash alone has made the store need a rebuild: {}",
                          store->notes().front());
    }
  }
  std::unique_ptr<SimAggregator> aggregator(
      new SimAggregator(world, ledger, std::move(store), options));
  RETURN_IF_ERROR(aggregator->Restore());
  aggregator->Tick();
  return aggregator;
}

SimAggregator::SimAggregator(SimWorld& world, SimLedger& ledger, std::unique_ptr<Store> store,
                             const Options& options)
    : world_(world),
      ledger_(ledger),
      options_(options),
      runner_(world.runner),
      store_(std::move(store)),
      clocks_(world.clock),
      coordinator_(std::make_unique<Coordinator>(Coordinator::Deps{.clock = world.clock,
                                                                   .random = world.random,
                                                                   .orders = connections_,
                                                                   .storage = *this,
                                                                   .clocks = clocks_,
                                                                   .quota = quota_})),
      reports_(std::make_unique<AgentReports>(*coordinator_, store_->chunks(), connections_,
                                              store_->aggregator_id())),
      budget_(options.budget_bytes),
      committer_(store_->chunks(), budget_, metrics_, world.clock, *this) {
  if (options_.wrap_writer) wrapped_writer_ = options_.wrap_writer(*this, budget_);
}

SimAggregator::~SimAggregator() { runner_.Kill(); }

absl::Status SimAggregator::PutCapture(const CaptureRecord& record, bool durable) {
  absl::Status status = store_->captures().Put(record, durable);
  OnWriteHealth(status);
  if (status.ok() && HasEnded(record.state)) store_->chunks().Forget(record.id);
  return status;
}

void SimAggregator::RememberAgent(const KnownAgent& agent) {
  store_->inventory()
      .PutAgent({.info = agent.info,
                 .first_seen_realtime_ns = agent.first_seen_realtime_ns,
                 .last_seen_realtime_ns = agent.last_seen_realtime_ns})
      .IgnoreError();
}

void SimAggregator::RememberWorker(const std::string& agent_id, const WorkerInfo& worker) {
  store_->inventory()
      .PutWorker({.info = worker,
                  .agent_id = agent_id,
                  .first_seen_realtime_ns = world_.clock.RealtimeNs(),
                  .last_seen_realtime_ns = world_.clock.RealtimeNs()})
      .IgnoreError();
}

absl::Status SimAggregator::Restore() {
  ASSIGN_OR_RETURN(std::vector<AgentRecord> agents, store_->inventory().Agents());
  for (AgentRecord& agent : agents) {
    coordinator_->RestoreAgent(std::move(agent.info), agent.first_seen_realtime_ns,
                               agent.last_seen_realtime_ns);
  }
  ASSIGN_OR_RETURN(std::vector<CaptureRecord> captures, store_->captures().List());
  for (CaptureRecord& capture : captures) {
    if (!HasEnded(capture.state)) coordinator_->RestoreCapture(std::move(capture));
  }
  return absl::OkStatus();
}

void SimAggregator::OnWriteHealth(const absl::Status& status) {
  if (status.ok() || absl::IsResourceExhausted(status)) {
    store_failing_since_ns_ = 0;
  } else if (store_failing_since_ns_ == 0) {
    store_failing_since_ns_ = world_.clock.MonotonicNs();
  }
}

bool SimAggregator::CannotContinue() const {
  return store_failing_since_ns_ != 0 &&
         world_.clock.MonotonicNs() >= store_failing_since_ns_ + kStorePatienceNs;
}

void SimAggregator::Tick() {
  coordinator_->Tick();
  runner_.PostDelayedTask([this] { Tick(); }, kTickNs);
}

// --- The writer ----------------------------------------------------------------------------------

void SimAggregator::Submit(ReceivedChunk chunk, Done done) {
  gathering_.dones.push_back([this, header = chunk.header, columns = chunk.columns,
                              done = std::move(done)](const absl::StatusOr<PutResult>& result) {
    world_.trace.Log("chunk {} of {} with {} rows: {}", header.sequence, ToString(header.stream),
                     header.event_count,
                     result.ok()
                         ? fmt::format("outcome {}, next {}", static_cast<int>(result->outcome),
                                       result->next_sequence)
                         : std::string(result.status().message()));
    if (result.ok() && result->outcome == PutOutcome::kStored) ledger_.OnStored(header, columns);
    done(result);
  });
  gathering_.chunks.push_back(std::move(chunk));
  if (std::exchange(commit_due_, true)) return;
  runner_.PostDelayedTask([this] { Commit(); }, options_.commit_ns);
}

void SimAggregator::Commit() {
  commit_due_ = false;
  ChunkCommitter::Group group = std::exchange(gathering_, {});
  committer_.Commit(group);
}

// --- Calls ---------------------------------------------------------------------------------------

void SimAggregator::AcceptUpload(std::shared_ptr<UploadSimCall> call, const std::string& agent_id) {
  // What the agent calls its streams in this call, for the ledger.
  using Names = std::map<uint32_t, std::pair<CaptureId, StreamIdentity>>;
  const auto names = std::make_shared<Names>();
  const auto incoming = std::make_shared<v1::ChunkEnvelope*>(nullptr);
  ChunkReceiver& writer = wrapped_writer_ == nullptr ? *this : *wrapped_writer_;
  auto exchange = std::make_shared<UploadExchange>(
      UploadDeps{.door = door_, .writer = writer, .budget = budget_, .metrics = metrics_}, agent_id,
      UploadExchange::Transport{
          .read =
              [call, incoming](v1::ChunkEnvelope* envelope) {
                *incoming = envelope;
                call->Read(envelope);
              },
          .write =
              [this, call, names](const v1::UploadAck* ack) {
                if (const auto it = names->find(ack->stream_ref()); it != names->end()) {
                  world_.trace.Log("ack {} of {}: next {} refusal {} {}", ack->stream_ref(),
                                   it->second.second.agent_id, ack->next_sequence(),
                                   static_cast<int>(ack->refusal()), ack->message());
                  ledger_.OnAcknowledged(it->second.first, it->second.second, ack->next_sequence());
                }
                call->WriteDown(*ack);
              },
          .finish = [call](const grpc::Status& status) { call->Finish(FromGrpcStatus(status)); }});
  call->Accept(
      {.on_read_done =
           [exchange, incoming, names](bool ok) {
             if (ok) {
               const auto header = ParseEnvelopeHeader(**incoming);
               if (header.ok()) {
                 (*names)[(*incoming)->stream_ref()] = {header->capture_id, header->stream};
               }
             }
             exchange->OnReadDone(ok);
           },
       .on_write_done = [exchange](bool ok) { exchange->OnWriteDone(ok); },
       .on_cancel = [exchange] { exchange->OnCancel(); },
       .on_done = [exchange] { exchange->OnDone(); }});
  exchange->Begin();
}

void SimAggregator::AcceptControl(std::shared_ptr<ControlSimCall> call) {
  auto exchange = std::make_shared<ControlExchange>(
      ControlDeps{.sequence = runner_, .reports = *reports_, .connections = connections_},
      ControlExchange::Transport{
          .read = [call](v1::AgentReport* report) { call->Read(report); },
          .write = [call](const v1::AgentOrder* order) { call->WriteDown(*order); },
          .finish = [call](const grpc::Status& status) { call->Finish(FromGrpcStatus(status)); }});
  call->Accept({.on_read_done = [exchange](bool ok) { exchange->OnReadDone(ok); },
                .on_write_done = [exchange](bool ok) { exchange->OnWriteDone(ok); },
                .on_cancel = [exchange] { exchange->OnCancel(); },
                .on_done = [exchange] { exchange->OnDone(); }});
  exchange->Begin();
}

}  // namespace neurontrace
