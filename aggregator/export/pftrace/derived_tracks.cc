// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/derived_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "aggregator/export/pftrace/track_ranks.h"

namespace neurontrace {
namespace {

// Arrow ids of each kind stand apart; those of framework files count from 1.
constexpr uint64_t kCollectiveFlows = uint64_t{1} << 48;
constexpr uint64_t kExecutionFlows = uint64_t{1} << 49;
// Executions whose device part is awaited; older ones are forgotten together.
constexpr size_t kAwaitedMax = 262'144;

constexpr std::string_view kStepsAbout =
    "derived: each execution of the core, or what its framework calls a step";
constexpr std::string_view kCollectivesAbout =
    "derived: from the first core's arrival to the last one's end, joined by exec_id and op_id";
constexpr std::string_view kMemoryAbout =
    "derived: what allocation events say is in use, of the processes that were recorded";
constexpr std::string_view kBandwidthAbout =
    "derived: bytes of each transfer spread evenly over its time";

}  // namespace

DerivedTracks::DerivedTracks(const TimelineHeader& header, bool has_flows, TrackTable& tracks,
                             PacketWriter& out)
    : header_(header),
      has_flows_(has_flows),
      tracks_(tracks),
      out_(out),
      execution_finder_(header.streams, fields_),
      step_finder_(header.streams, fields_),
      collective_finder_(header.streams, fields_),
      hbm_use_(header.streams, fields_),
      bandwidth_(fields_),
      next_execution_flow_(kExecutionFlows) {}

std::string DerivedTracks::CoreLabel(uint32_t stream) const {
  const TimelineStream& about = header_.streams[stream];
  std::string label = about.rank.label;
  const StreamIdentity& identity = about.description.identity;
  if (identity.has_core()) {
    label += fmt::format("{}nc{}", label.empty() ? "" : "-", identity.nc_idx);
  } else {
    label += identity.name;
  }
  return label.empty() ? "worker" : label;
}

uint64_t DerivedTracks::TakeWanted(TimelineRecord& record, const ShapeFields& fields) {
  switch (fields.type) {
    case DerivedType::kCollective:
    case DerivedType::kHostBarrier: {
      const auto number = collective_finder_.Join(record);
      return number && has_flows_ ? kCollectiveFlows + *number : 0;
    }
    case DerivedType::kCopyIn:
    case DerivedType::kCopyOut:
      transfers_.records.push_back(&record);
      return 0;
    case DerivedType::kAllocate:
    case DerivedType::kDeallocate:
      allocations_.records.push_back(&record);
      return 0;
    case DerivedType::kPrepare:
    case DerivedType::kRunning:
    case DerivedType::kExecute:
    case DerivedType::kFramework:
      executing_.records.push_back(&record);
      return has_flows_ ? ExecutionFlow(record, fields) : 0;
    case DerivedType::kOther:
      break;
  }
  return 0;
}

uint64_t DerivedTracks::ExecutionFlow(const TimelineRecord& record, const ShapeFields& fields) {
  const DerivedType type = fields.type;
  if (record.kind != RecordKind::kSpan ||
      (type != DerivedType::kPrepare && type != DerivedType::kRunning)) {
    return 0;
  }
  const auto exec_id = StartNumber(record, fields, DerivedField::kExecId);
  if (!exec_id) return 0;
  const std::pair key(record.stream, *exec_id);
  if (type == DerivedType::kPrepare) {
    if (execution_flows_.size() >= kAwaitedMax) execution_flows_.clear();
    return execution_flows_[key] = next_execution_flow_++;
  }
  const auto known = execution_flows_.find(key);
  return known == execution_flows_.end() ? 0 : known->second;
}

void DerivedTracks::EndBatch(uint64_t begin_ns, uint64_t end_ns) {
  for (TimelineBatch* batch : {&transfers_, &allocations_, &executing_}) {
    batch->begin_ns = begin_ns;
    batch->end_ns = end_ns;
  }
  executions_.clear();
  execution_finder_.Take(executing_, executions_);
  step_finder_.Take(executing_, executions_, steps_);
  collective_finder_.CloseBefore(end_ns, collectives_);
  hbm_use_.Take(allocations_, memory_);
  bandwidth_.Take(transfers_, samples_);
  for (TimelineBatch* batch : {&transfers_, &allocations_, &executing_}) batch->records.clear();
  WriteAll();
}

void DerivedTracks::Finish() {
  executions_.clear();
  execution_finder_.Finish(executions_);
  step_finder_.Take({.begin_ns = UINT64_MAX, .end_ns = UINT64_MAX}, executions_, steps_);
  step_finder_.Finish(steps_);
  collective_finder_.Finish(collectives_);
  hbm_use_.Finish(memory_);
  bandwidth_.Finish(samples_);
  WriteAll();
}

void DerivedTracks::WriteAll() {
  WriteSteps();
  WriteCollectives();
  WriteMemory();
  WriteBandwidth();
}

// Slices of a lane follow each other. They are given out late and not in the order of their begins,
// so that a lane is free only after all that it has.
uint32_t DerivedTracks::LaneFor(SliceTrack& track, const Extent& extent) {
  for (Lane& lane : track.lanes) {
    if (lane.free_ns > extent.start_ns) continue;
    lane.free_ns = extent.end_ns;
    return lane.uuid;
  }
  if (track.lanes.size() >= kLanesMax) {
    ++left_out_;
    return 0;
  }
  const size_t number = track.lanes.size();
  const uint32_t uuid = tracks_.DescribeChild(
      {.parent_uuid = track.parent_uuid,
       .name = number == 0 ? track.name : fmt::format("{} (lane {})", track.name, number + 1),
       .rank = track.rank + static_cast<int32_t>(number)});
  track.lanes.push_back({uuid, extent.end_ns});
  return uuid;
}

// The begin, in event_, and the end.
void DerivedTracks::WriteSlice(uint32_t uuid, const Extent& extent) {
  out_.SideEvent(extent.start_ns, event_.bytes());
  event_.Start(perfetto::EventType::kEnd, uuid);
  out_.SideEvent(extent.end_ns, event_.bytes());
}

void DerivedTracks::WriteValue(uint32_t uuid, uint64_t at_ns, uint64_t value) {
  event_.Start(perfetto::EventType::kCounter, uuid);
  event_.CounterValue(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  out_.SideEvent(at_ns, event_.bytes());
}

void DerivedTracks::WriteSteps() {
  for (const Step& step : steps_) {
    out_.StartOverIfDue();
    SliceTrack& track = step_tracks_[step.stream];
    if (track.name.empty()) {
      track.name = CoreLabel(step.stream) + " steps (derived)";
      track.parent_uuid = tracks_.StreamUuid(step.stream);
      track.rank = track_rank::kSteps;
    }
    const Extent extent{step.start_ns, std::max(step.start_ns, step.end_ns)};
    const uint32_t uuid = LaneFor(track, extent);
    if (uuid == 0) continue;
    event_.Start(perfetto::EventType::kBegin, uuid);
    event_.Name(out_.side_interner().EventName(
        step.source == StepSource::kFramework ? "framework step" : "step"));
    event_.Uint(Name("number"), step.number);
    event_.Uint(Name("duration"), extent.end_ns - extent.start_ns);
    event_.Uint(Name("device_busy_ns"), step.device_busy_ns);
    if (step.exec_id) event_.Uint(Name("exec_id"), *step.exec_id);
    if (!step.model_name.empty()) {
      event_.InternedString(Name("model_name"), Text(step.model_name));
    }
    if (step.source == StepSource::kFramework) event_.Uint(Name("executions"), step.executions);
    if (step.is_open) event_.Bool(Name("open"), true);
    event_.Bool(Name("derived"), true);
    WriteSlice(uuid, extent);
  }
  steps_.clear();
}

void DerivedTracks::WriteCollectives() {
  for (const Collective& collective : collectives_) {
    // Of one core alone it is what is recorded; parts at no common time are no whole.
    if (collective.members.size() < 2 || collective.is_disjoint()) continue;
    out_.StartOverIfDue();
    SliceTrack& track = collective_tracks_[collective.communicator];
    if (track.name.empty()) {
      track.name =
          collective_tracks_.size() == 1
              ? "collectives (derived)"
              : fmt::format("collectives of communicator {} (derived)", collective.communicator);
    }
    Extent extent{collective.start_ns(), 0};
    for (const CollectiveMember& member : collective.members) {
      extent.end_ns = std::max(extent.end_ns, member.end_ns);
    }
    const uint32_t uuid = LaneFor(track, extent);
    if (uuid == 0) continue;
    event_.Start(perfetto::EventType::kBegin, uuid);
    event_.Name(out_.side_interner().EventName(
        collective.kind == CollectiveKind::kHostBarrier ? "host barrier"
        : collective.algorithm.empty()                  ? "collective"
                                       : fmt::format("collective {}", collective.algorithm)));
    event_.Uint(Name("exec_id"), collective.exec_id);
    event_.Uint(Name("op_id"), collective.op_id);
    event_.Uint(Name("duration"), extent.end_ns - extent.start_ns);
    event_.Uint(Name("cores"), collective.members.size());
    event_.Uint(Name("arrival_skew_ns"), collective.arrival_skew_ns());
    if (const auto bound_ns = collective.skew_bound_ns()) {
      event_.Uint(Name("arrival_skew_bound_ns"), *bound_ns);
    }
    event_.InternedString(Name("last_to_arrive"), Text(CoreLabel(collective.last().stream)));
    event_.Bool(Name("last_is_known"), collective.is_last_known());
    if (collective.absent_count > 0) event_.Uint(Name("absent_cores"), collective.absent_count);
    event_.Bool(Name("derived"), true);
    WriteSlice(uuid, extent);
  }
  collectives_.clear();
}

void DerivedTracks::WriteSample(const HbmSample& sample, std::string_view name, uint64_t value,
                                Counter& counter) {
  if (counter.value == value || (!counter.value && value == 0)) return;
  const HbmIdentity& identity = hbm_use_.memories()[sample.hbm];
  if (counter.uuid == 0) {
    counter.uuid = tracks_.DescribeChild(
        {.parent_uuid = memory_tracks_[sample.hbm].parent_uuid,
         .name = fmt::format("device {} HBM {} {}", identity.device, identity.hbm, name),
         .unit = TrackUnit::kBytes,
         .description = kMemoryAbout,
         .rank = counter.rank});
  }
  counter.value = value;
  WriteValue(counter.uuid, sample.time_ns, value);
}

void DerivedTracks::WriteMemory() {
  for (const HbmSample& sample : memory_) {
    if (memory_tracks_.size() >= kCounterTracksMax && !memory_tracks_.contains(sample.hbm)) {
      ++left_out_;
      continue;
    }
    out_.StartOverIfDue();
    MemoryTracks& tracks = memory_tracks_[sample.hbm];
    if (tracks.parent_uuid == 0) {
      const HbmIdentity& identity = hbm_use_.memories()[sample.hbm];
      tracks.parent_uuid = tracks_.DescribeChild(
          {.parent_uuid = tracks_.InstanceUuid(identity.instance_id),
           .name = fmt::format("device {} HBM {} (derived)", identity.device, identity.hbm),
           .description = kMemoryAbout,
           .rank = track_rank::kMemory,
           .orders_children = true});
    }
    WriteSample(sample, "total", sample.total_bytes, tracks.total);
    for (size_t i = 0; i < kHbmCategories; ++i) {
      tracks.categories[i].rank = static_cast<int32_t>(i + 1);
      WriteSample(sample, ToString(static_cast<HbmCategory>(i)), sample.category_bytes[i],
                  tracks.categories[i]);
    }
  }
  memory_.clear();
}

void DerivedTracks::WriteBandwidth() {
  for (const BandwidthSample& sample : samples_) {
    const std::pair key(sample.stream, static_cast<uint8_t>(sample.direction));
    if (bandwidth_tracks_.size() >= kCounterTracksMax && !bandwidth_tracks_.contains(key)) {
      ++left_out_;
      continue;
    }
    out_.StartOverIfDue();
    Counter& counter = bandwidth_tracks_[key];
    if (counter.uuid == 0) {
      const bool is_in = sample.direction == TransferDirection::kHostToDevice;
      counter.uuid =
          tracks_.DescribeChild({.parent_uuid = tracks_.StreamUuid(sample.stream),
                                 .name = fmt::format("{} {} (derived)", CoreLabel(sample.stream),
                                                     is_in ? "host to device" : "device to host"),
                                 .unit = TrackUnit::kBytesPerSecond,
                                 .description = kBandwidthAbout,
                                 .rank = track_rank::kTransfers + (is_in ? 0 : 1)});
    }
    const double per_second = std::min(sample.BytesPerSecond(bandwidth_.bin_ns()), 9e18);
    const auto value = static_cast<uint64_t>(std::llround(per_second));
    if (counter.value == value) continue;
    counter.value = value;
    WriteValue(counter.uuid, sample.start_ns, value);
  }
  samples_.clear();
}

}  // namespace neurontrace
