// SPDX-License-Identifier: Apache-2.0
#include "simulate/store_writer.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <utility>

#include "aggregator/store/foreign_stops.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/base/status.h"
#include "neurontrace/v1/chunk.pb.h"
#include "simulate/fleet_rows.h"

namespace neurontrace {
namespace {

// Events that wait for their chunks, over all ranks: about 45 MB.
constexpr size_t kWaitingMax = 500'000;
constexpr size_t kChunksPerPut = 256;
constexpr char kBootId[] = "simulated";

}  // namespace

// Turns events of one rank into the columns of a chunk.
class StoreWriter::Encoder {
 public:
  explicit Encoder(const FleetPlan& plan) : rows_(plan) {}

  // `rows` is the number of the rank's rows so far, and is increased.
  absl::StatusOr<EncodedColumns> Encode(std::span<const FleetEvent> events, uint64_t& rows) {
    shapes_.fill(EventChunkBuilder::kNoShape);
    for (const FleetEvent& event : events) {
      const uint64_t start_row = rows++;
      RETURN_IF_ERROR(Append(rows_.Start(event, start_row)));
      const auto stop = rows_.Stop(event, rows, start_row);
      if (!stop) continue;
      ++rows;
      RETURN_IF_ERROR(Append(*stop));
    }
    return builder_.Finish();
  }

 private:
  absl::Status Append(const FleetRow& row) {
    EventChunkBuilder::ShapeId& shape = shapes_[row.shape];
    if (shape == EventChunkBuilder::kNoShape) {
      ASSIGN_OR_RETURN(shape, builder_.InternShape(rows_.shape(row.shape)));
    }
    return builder_.Append(shape, row.fields, row.values);
  }

  FleetRows rows_;
  EventChunkBuilder builder_;
  std::array<EventChunkBuilder::ShapeId, FleetRows::kShapes> shapes_ = {};
};

StoreWriter::StoreWriter(std::unique_ptr<Store> store, const FleetModel& model)
    : store_(std::move(store)),
      model_(model),
      encoder_(std::make_unique<Encoder>(model.plan())),
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
  const FleetPlan& plan = model_.plan();
  header.stream = FleetStream(plan, rank, FleetWorker(plan, rank, kBootId).instance_id, kBootId);
  header.sequence = stream.sequence++;
  header.events_before = stream.rows;
  header.producer_version = "neurontrace-simulate " NEURONTRACE_VERSION;
  header.rank_evidence = FleetRankEvidence(plan, rank);
  Chunk chunk;
  if (!stream.events.empty()) {
    ASSIGN_OR_RETURN(const EncodedColumns columns, encoder_->Encode(stream.events, stream.rows));
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
    const WorkerIdentity worker = FleetWorker(plan, rank, kBootId);
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
    // As at the end of a capture; without it, a lost worker is one that died.
    if (is_silent) status.obstacle = CaptureObstacle::kAgentLost;
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
