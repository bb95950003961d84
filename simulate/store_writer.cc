// SPDX-License-Identifier: Apache-2.0
#include "simulate/store_writer.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include "aggregator/store/foreign_stops.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "neurontrace/v1/chunk.pb.h"

namespace neurontrace {
namespace {

// Events that wait for their chunks, over all ranks: about 45 MB.
constexpr size_t kWaitingMax = 500'000;
constexpr size_t kChunksPerPut = 256;
constexpr auto kU = ValueType::kUint;
constexpr auto kS = ValueType::kString;

struct TypeKeys {
  std::vector<ShapeKey> start;
  std::vector<ShapeKey> stop;
};

std::vector<ShapeKey> Keys(std::initializer_list<std::pair<std::string_view, ValueType>> keys) {
  std::vector<ShapeKey> list;
  for (const auto& [name, type] : keys) list.push_back({name, type, KeyScope::kData});
  return list;
}

// The runtime's attributes of each type: fleet_model.h's order.
std::array<TypeKeys, kFleetEventTypes> MakeTypeKeys() {
  const auto model = Keys({{"model_id", kU}, {"model_name", kS}});
  const auto block = Keys({{"exec_id", kU}, {"model_id", kU}, {"model_name", kS}});
  const auto ticks = Keys({{"nc_timestamp_ns", kU}});
  return {{{model, {}},
           {block, {}},
           {block, {}},
           {Keys({{"device_core_idx", kU},
                  {"exec_id", kU},
                  {"nc_timestamp_ns", kU},
                  {"model_id", kU},
                  {"model_name", kS}}),
            ticks},
           {Keys({{"gid", kU},
                  {"op_id", kU},
                  {"exec_id", kU},
                  {"nc_timestamp_ns", kU},
                  {"algorithm", kS}}),
            ticks},
           {Keys({{"nc_timestamp_ns", kU}, {"model_id", kU}}), ticks},
           {Keys({{"exec_id", kU}, {"nec_dev_id", kU}}), {}},
           {Keys({{"tensor_id", kU}, {"size", kU}}), {}},
           {Keys({{"tensor_id", kU}, {"size", kU}}), {}},
           {Keys({{"device_core_idx", kU}, {"exec_id", kU}, {"nc_timestamp_ns", kU}}), {}}}};
}

constexpr uint32_t kPresent = ((1u << kFieldCount) - 1) & ~FieldBit(Field::kNrtaSeqId);

AttributeValue Number(uint64_t bits) { return {bits, {}}; }

}  // namespace

// Turns events of one rank into the columns of a chunk.
class StoreWriter::Encoder {
 public:
  explicit Encoder(const FleetModel& model) : model_(model), keys_(MakeTypeKeys()) {
    for (uint16_t i = 0; i < model.plan().pp * 3; ++i) names_.push_back(model.ModelName(i));
  }

  absl::StatusOr<EncodedColumns> Encode(uint32_t rank, std::span<const FleetEvent> events,
                                        uint64_t& rows) {
    for (auto& pair : shapes_) pair = {EventChunkBuilder::kNoShape, EventChunkBuilder::kNoShape};
    for (const FleetEvent& event : events) {
      const bool is_instant = event.type == FleetEventType::kError;
      const uint64_t span = Id(rank, rows);
      RETURN_IF_ERROR(Append(rank, event, true, span, rows));
      if (!is_instant && !event.is_open) RETURN_IF_ERROR(Append(rank, event, false, span, rows));
    }
    return builder_.Finish();
  }

 private:
  uint64_t CoreOf(uint32_t rank) const { return rank % model_.plan().cores_per_process; }
  uint64_t Id(uint32_t rank, uint64_t row) const { return CoreOf(rank) << 50 | row; }

  absl::Status Append(uint32_t rank, const FleetEvent& event, bool is_start, uint64_t span,
                      uint64_t& rows) {
    const auto type = static_cast<size_t>(event.type);
    EventChunkBuilder::ShapeId& shape = shapes_[type][is_start ? 0 : 1];
    if (shape == EventChunkBuilder::kNoShape) {
      Phase phase = is_start ? Phase::kStart : Phase::kStop;
      if (event.type == FleetEventType::kError) phase = Phase::kInstant;
      ASSIGN_OR_RETURN(shape,
                       builder_.InternShape({RuntimeEventName(event.type), phase, kPresent, 0,
                                             is_start ? keys_[type].start : keys_[type].stop}));
    }
    EventFields fields;
    fields.timestamp_ns = is_start ? event.start_ns : event.end_ns;
    fields.id = Id(rank, rows);
    fields.nc_local_id = rows++;
    fields.tracking_id = span;
    fields.thread_id = 1'000 + CoreOf(rank);
    fields.worker_gid = rank;
    values_.clear();
    FillValues(rank, event, is_start ? keys_[type].start : keys_[type].stop, fields.timestamp_ns);
    return builder_.Append(shape, fields, values_);
  }

  void FillValues(uint32_t rank, const FleetEvent& event, const std::vector<ShapeKey>& keys,
                  uint64_t time_ns) {
    for (const ShapeKey& key : keys) {
      if (key.name == "model_id") values_.push_back(Number(event.model + 1));
      if (key.name == "model_name") values_.push_back({0, names_[event.model]});
      if (key.name == "exec_id") values_.push_back(Number(event.exec_id));
      if (key.name == "op_id") values_.push_back(Number(static_cast<uint64_t>(event.op)));
      if (key.name == "gid") values_.push_back(Number(event.group));
      if (key.name == "algorithm") values_.push_back({0, "ring"});
      if (key.name == "device_core_idx" || key.name == "nec_dev_id")
        values_.push_back(Number(CoreOf(rank)));
      if (key.name == "tensor_id") values_.push_back(Number(0x7f3a'4000'0000 + event.exec_id % 64));
      if (key.name == "size") values_.push_back(Number(event.bytes));
      // The device counts from its start, by its own clock.
      if (key.name == "nc_timestamp_ns")
        values_.push_back(Number(time_ns - model_.plan().start_ns / 2));
    }
  }

  const FleetModel& model_;
  const std::array<TypeKeys, kFleetEventTypes> keys_;
  std::vector<std::string> names_;
  EventChunkBuilder builder_;
  std::array<std::array<EventChunkBuilder::ShapeId, 2>, kFleetEventTypes> shapes_ = {};
  std::vector<AttributeValue> values_;
};

StoreWriter::StoreWriter(std::unique_ptr<Store> store, const FleetModel& model)
    : store_(std::move(store)),
      model_(model),
      encoder_(std::make_unique<Encoder>(model)),
      streams_(model.plan().ranks()) {}
StoreWriter::~StoreWriter() = default;

absl::StatusOr<std::unique_ptr<StoreWriter>> StoreWriter::Create(const std::string& directory,
                                                                 const FleetModel& model) {
  std::error_code ignored;
  if (std::filesystem::exists(directory, ignored) &&
      !std::filesystem::is_empty(directory, ignored)) {
    return absl::AlreadyExistsError(
        fmt::format("{} is not empty; name a new directory for the store", directory));
  }
  StoreOptions options;
  options.aggregator_id = "simulated";
  options.durability = Durability::kPageCache;
  ASSIGN_OR_RETURN(auto store, Store::Open(directory, options));
  std::unique_ptr<StoreWriter> writer(new StoreWriter(std::move(store), model));
  RETURN_IF_ERROR(writer->Begin());
  return writer;
}

absl::Status StoreWriter::Begin() {
  const FleetPlan& plan = model_.plan();
  SeededRandom random(plan.seed);
  FakeClock clock(plan.start_ns);
  record_.id = CaptureId::Make(clock, random);
  record_.spec.name = fmt::format("simulated {} ranks, seed {}", plan.ranks(), plan.seed);
  record_.state = CaptureState::kRecording;
  record_.started_realtime_ns = plan.start_ns;
  return store_->captures().Put(record_, true);
}

WorkerIdentity StoreWriter::WorkerOf(uint32_t rank) const {
  const FleetPlan& plan = model_.plan();
  const uint32_t pid = 1'000 + plan.process_of(rank) % plan.processes_per_instance;
  return {.instance_id = fmt::format("i-{:017x}", plan.instance_of(rank) + 1),
          .boot_id = "simulated",
          .pid = pid,
          .start_time_ticks = 1};
}

StreamIdentity StoreWriter::IdentityOf(uint32_t rank) const {
  const WorkerIdentity worker = WorkerOf(rank);
  return {.agent_id = worker.instance_id,
          .worker = worker,
          .kind = StreamKind::kNeuronCore,
          .nc_idx = rank % model_.plan().cores_per_process};
}

void StoreWriter::Take(std::span<const FleetEvent> events) {
  for (const FleetEvent& event : events) streams_[event.rank].events.push_back(event);
  waiting_ += events.size();
  if (waiting_ >= kWaitingMax && status_.ok()) status_ = WriteAll();
}

absl::Status StoreWriter::WriteAll() {
  for (uint32_t rank = 0; rank < streams_.size(); ++rank) {
    if (!streams_[rank].events.empty()) RETURN_IF_ERROR(WriteChunk(rank, {}));
  }
  waiting_ = 0;
  return Put();
}

absl::Status StoreWriter::WriteChunk(uint32_t rank, ChunkHeader header) {
  Stream& stream = streams_[rank];
  header.capture_id = record_.id;
  header.stream = IdentityOf(rank);
  header.sequence = stream.sequence++;
  header.events_before = stream.rows;
  header.producer_version = "neurontrace-simulate " NEURONTRACE_VERSION;
  header.rank_evidence = {{RankSource::kCommunicator, rank, model_.plan().ranks(), "simulated"}};
  Chunk chunk;
  if (!stream.events.empty()) {
    ASSIGN_OR_RETURN(const EncodedColumns columns,
                     encoder_->Encode(rank, stream.events, stream.rows));
    stream.events.clear();
    header.event_count = columns.event_count;
    header.first_timestamp_ns = columns.first_timestamp_ns;
    header.last_timestamp_ns = columns.last_timestamp_ns;
    header.columns_bytes = static_cast<uint32_t>(columns.bytes.size());
    chunk.columns = CompressColumns(columns.bytes);
    events_written_ += columns.event_count;
  }
  header.source_position = stream.rows;
  chunk.header = std::move(header);
  v1::ChunkEnvelope envelope;
  ToEnvelope(std::move(chunk), 0, &envelope);
  ReceivedChunk received;
  ASSIGN_OR_RETURN(received.header, validator_.Validate(envelope));
  if (received.header.event_count > 0)
    received.foreign_stops = foreign_stops_.Find(validator_.chunk());
  received.crc32c = envelope.crc32c();
  received.header_bytes = std::move(*envelope.mutable_header());
  received.columns = std::move(*envelope.mutable_columns());
  bytes_written_ += received.bytes();
  group_.push_back(std::move(received));
  return group_.size() >= kChunksPerPut ? Put() : absl::OkStatus();
}

absl::Status StoreWriter::Put() {
  if (group_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto results, store_->chunks().PutBatch(group_));
  group_.clear();
  for (const PutResult& result : results) {
    if (result.outcome != PutOutcome::kStored) {
      return absl::InternalError(
          fmt::format("the store refused a chunk: outcome {}", static_cast<int>(result.outcome)));
    }
  }
  return absl::OkStatus();
}

// The parts of agents and workers, as a capture has them at its end.
void StoreWriter::AddParts() {
  const FleetPlan& plan = model_.plan();
  bool is_complete = true;
  for (uint32_t rank = 0; rank < plan.ranks(); ++rank) {
    if (model_.is_missing(rank)) continue;
    const CoreCondition condition = model_.Condition(rank);
    const WorkerIdentity worker = WorkerOf(rank);
    const bool is_silent =
        !condition.has_ended && condition.alive_at_ns < model_.HostTime(rank, model_.true_ns());
    if (record_.agents.empty() || record_.agents.back().instance_id != worker.instance_id) {
      record_.agents.push_back({.agent_id = worker.instance_id,
                                .instance_id = worker.instance_id,
                                .reported = true,
                                .finished = !is_silent,
                                .vanished = is_silent});
    }
    if (record_.workers.empty() || record_.workers.back().worker != worker) {
      ++record_.agents.back().matched_workers;
      CaptureWorkerStatus status;
      status.capture_id = record_.id;
      status.worker = worker;
      status.begun_realtime_ns = plan.start_ns;
      status.state = CaptureWorkerState::kComplete;
      record_.workers.push_back(std::move(status));
    }
    CaptureWorkerStatus& status = record_.workers.back();
    ++status.streams;
    status.events_read += streams_[rank].rows;
    status.events_stored += streams_[rank].rows;
    status.events_lost += condition.lost_events;
    status.events_lost_unknown |= condition.lost_unknown;
    if (condition.has_ended || is_silent) status.state = CaptureWorkerState::kLost;
    if (condition.has_ended) status.detail = "the process has ended";
    is_complete &= status.state == CaptureWorkerState::kComplete && status.events_lost == 0 &&
                   !status.events_lost_unknown;
  }
  record_.state = is_complete ? CaptureState::kComplete : CaptureState::kIncomplete;
}

absl::Status StoreWriter::Finish() {
  if (!status_.ok()) return status_;
  RETURN_IF_ERROR(WriteAll());
  for (uint32_t rank = 0; rank < streams_.size(); ++rank) {
    if (model_.is_missing(rank)) continue;
    const CoreCondition condition = model_.Condition(rank);
    const bool is_silent =
        !condition.has_ended && condition.alive_at_ns < model_.HostTime(rank, model_.true_ns());
    if (is_silent) continue;  // its agent is late: neither a canary nor an end
    ChunkHeader header;
    if (condition.lost_events > 0 || condition.lost_unknown) {
      header.losses = {{.place = LossPlace::kRuntimeRing,
                        .reason = LossReason::kOverwritten,
                        .events = condition.lost_events,
                        .events_unknown = condition.lost_unknown,
                        .first_timestamp_ns = condition.loss_begin_ns,
                        .last_timestamp_ns = condition.loss_end_ns,
                        .detail = "simulated"}};
    }
    if (!condition.has_ended) {
      ChunkHeader canary;
      canary.canary_realtime_ns = condition.alive_at_ns;
      RETURN_IF_ERROR(WriteChunk(rank, canary));
    }
    header.end_of_stream = true;
    RETURN_IF_ERROR(WriteChunk(rank, header));
  }
  RETURN_IF_ERROR(Put());
  AddParts();
  record_.stopped_realtime_ns = record_.ended_realtime_ns = model_.true_ns();
  return store_->captures().Put(record_, true);
}

}  // namespace neurontrace
