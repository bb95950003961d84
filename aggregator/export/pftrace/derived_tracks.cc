// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/derived_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "aggregator/export/pftrace/track_ranks.h"

namespace neurontrace {
namespace {

constexpr std::string_view kStepsAbout =
    "derived: each step of the framework, or else each execution of the core";
constexpr std::string_view kCollectivesAbout =
    "derived: from the first core's arrival to the last core's end, joined by exec_id and op_id";
constexpr std::string_view kMemoryAbout =
    "derived: memory in use according to the allocation events of the recorded processes";
constexpr std::string_view kBandwidthAbout =
    "derived: bytes of each transfer spread evenly over its time";

}  // namespace

DerivedTracks::DerivedTracks(const TimelineHeader& header, uint64_t bin_ns, TrackTable& tracks,
                             PacketWriter& out)
    : header_(header), bin_ns_(bin_ns), tracks_(tracks), out_(out) {}

// A rank and a core, a file's name, or "worker": what is known, the most telling first.
std::string DerivedTracks::CoreLabel(uint32_t stream) const {
  const TimelineStream& about = header_.streams[stream];
  std::string label = about.rank.label;
  const StreamIdentity& identity = about.description.identity;
  if (identity.has_core()) {
    label += fmt::format("{}nc{}", label.empty() ? "" : "-", identity.nc_idx);
  } else if (!identity.name.empty()) {
    label += (label.empty() ? "" : "-") + identity.name;
  }
  return label.empty() ? "worker" : label;
}

void DerivedTracks::Write(const DerivedBatch& batch) {
  // Copied, because the Derivation may be on another thread, ahead by some batches.
  memories_.insert(memories_.end(), batch.new_memories.begin(), batch.new_memories.end());
  WriteSteps(batch.steps);
  WriteCollectives(batch.collectives);
  WriteMemory(batch.memory);
  WriteBandwidth(batch.bandwidth);
  if (batch.answer) WriteAnswer(*batch.answer);
}

// Slices of a lane follow each other. They come late and not in the order of their begins, so that
// a lane counts as free only after everything that it has.
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

// Writes the begin, which is in event_, and the end.
void DerivedTracks::WriteSlice(uint32_t uuid, const Extent& extent) {
  out_.SideEvent(extent.start_ns, event_.bytes());
  event_.Start(perfetto::EventType::kEnd, uuid);
  out_.SideEvent(extent.end_ns, event_.bytes());
}

// Counters are integers; values beyond int64 are shown as its maximum.
void DerivedTracks::WriteValue(uint32_t uuid, uint64_t at_ns, uint64_t value) {
  event_.Start(perfetto::EventType::kCounter, uuid);
  event_.CounterValue(static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  out_.SideEvent(at_ns, event_.bytes());
}

void DerivedTracks::WriteSteps(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    out_.StartOverIfDue();
    SliceTrack& track = step_tracks_[step.stream];
    if (track.name.empty()) {
      track.name = CoreLabel(step.stream) + " steps (derived)";
      track.parent_uuid = tracks_.StreamUuid(step.stream);
      track.rank = track_rank::kSteps;
    }
    // An end before the start would give a negative length.
    const Extent extent{step.start_ns, std::max(step.start_ns, step.end_ns)};
    const uint32_t uuid = LaneFor(track, extent);
    if (uuid == 0) continue;
    event_.Start(perfetto::EventType::kBegin, uuid);
    event_.Name(out_.side_interner().EventName(fmt::format(
        "{} {}", step.source == StepSource::kFramework ? "framework step" : "step", step.number)));
    // Also a category, so that queries find open slices without their arguments.
    if (step.is_open) event_.Category(out_.side_interner().Category("open"));
    event_.Uint(Name("number"), step.number);
    if (const auto gid = header_.streams[step.stream].rank.worker_gid) {
      event_.Int(Name("worker_gid"), *gid);
    }
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
}

void DerivedTracks::WriteCollectives(const std::vector<Collective>& collectives) {
  for (const Collective& collective : collectives) {
    // A collective of one core is what was recorded anyway, and parts at no common time are not a
    // whole.
    if (collective.members.size() < 2 || collective.is_disjoint()) continue;
    out_.StartOverIfDue();
    SliceTrack& track = collective_tracks_[collective.communicator];
    if (track.name.empty()) {
      track.name =
          // Most captures have one communicator, whose number would mean nothing to a reader.
          collective_tracks_.size() == 1
              ? "collectives (derived)"
              : fmt::format("collectives of communicator {} (derived)", collective.communicator);
    }
    // The slice covers all members. Each member also has a slice on its core's row.
    Extent extent{collective.start_ns(), 0};
    bool is_open = false;
    for (const CollectiveMember& member : collective.members) {
      extent.end_ns = std::max(extent.end_ns, member.end_ns);
      is_open = is_open || member.is_open;
    }
    const uint32_t uuid = LaneFor(track, extent);
    if (uuid == 0) continue;
    event_.Start(perfetto::EventType::kBegin, uuid);
    event_.Name(out_.side_interner().EventName(
        collective.kind == CollectiveKind::kHostBarrier ? "host barrier"
        : collective.algorithm.empty()                  ? "collective"
                                       : fmt::format("collective {}", collective.algorithm)));
    if (is_open) event_.Category(out_.side_interner().Category("open"));
    // The members have the same id, see PftraceExporter::WriteEvent.
    event_.CorrelationId(collective.number);
    event_.Uint(Name("exec_id"), collective.exec_id);
    event_.Uint(Name("op_id"), collective.op_id);
    event_.Uint(Name("duration"), extent.end_ns - extent.start_ns);
    event_.Uint(Name("cores"), collective.members.size());
    event_.Uint(Name("arrival_skew_ns"), collective.arrival_skew_ns());
    if (const auto bound_ns = collective.skew_bound_ns()) {
      event_.Uint(Name("arrival_skew_bound_ns"), *bound_ns);
    }
    event_.InternedString(Name("last_to_arrive"), Text(CoreLabel(collective.last().stream)));
    if (const auto gid = header_.streams[collective.last().stream].rank.worker_gid) {
      event_.Int(Name("worker_gid"), *gid);
    }
    event_.Bool(Name("last_is_known"), collective.is_last_known());
    if (collective.absent_count > 0) event_.Uint(Name("absent_cores"), collective.absent_count);
    if (is_open) event_.Bool(Name("open"), true);
    event_.Bool(Name("derived"), true);
    WriteSlice(uuid, extent);
  }
}

void DerivedTracks::WriteSample(const HbmSample& sample, std::string_view name, uint64_t value,
                                Counter& counter) {
  // A category that never had anything gets no counter at all.
  if (counter.value == value || (!counter.value && value == 0)) return;
  const HbmIdentity& identity = memories_[sample.hbm];
  if (counter.uuid == 0) {
    counter.uuid = tracks_.DescribeChild(
        {.parent_uuid = memory_tracks_[sample.hbm].parent_uuid,
         .name = fmt::format("device {} HBM {} {} (derived)", identity.device, identity.hbm, name),
         .unit = TrackUnit::kBytes,
         .description = kMemoryAbout,
         .rank = counter.rank});
  }
  counter.value = value;
  WriteValue(counter.uuid, sample.time_ns, value);
}

// Each memory has a heading with a counter for the total and one for each category in use.
void DerivedTracks::WriteMemory(const std::vector<HbmSample>& memory) {
  for (const HbmSample& sample : memory) {
    if (memory_tracks_.size() >= kCounterTracksMax && !memory_tracks_.contains(sample.hbm)) {
      ++left_out_;
      continue;
    }
    out_.StartOverIfDue();
    MemoryTracks& tracks = memory_tracks_[sample.hbm];
    if (tracks.parent_uuid == 0) {
      const HbmIdentity& identity = memories_[sample.hbm];
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
}

// Only changes are written. Bandwidth adds a sample of 0 after the last transfer, so that the line
// ends.
void DerivedTracks::WriteBandwidth(const std::vector<BandwidthSample>& samples) {
  for (const BandwidthSample& sample : samples) {
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
    // A hostile size must not exceed what llround can return.
    const double per_second = std::min(sample.BytesPerSecond(bin_ns_), 9e18);
    const auto value = static_cast<uint64_t>(std::llround(per_second));
    if (counter.value == value) continue;
    counter.value = value;
    WriteValue(counter.uuid, sample.start_ns, value);
  }
}

void DerivedTracks::AddText(std::string_view name, std::string_view text) {
  if (!text.empty()) event_.String(Name(name), text);
}

void DerivedTracks::AddFigures(const Verdict& verdict, const InsightLine& line) {
  event_.String(Name("kind"), VerdictKindName(verdict.kind));
  event_.String(Name("phase"), InsightPhaseName(verdict.phase));
  AddText("role", verdict.role);
  event_.Uint(Name("suspects"), line.streams.size());
  event_.Uint(Name("peers"), verdict.peers);
  // A hang has neither.
  if (verdict.ratio > 0) event_.Double(Name("ratio"), std::bit_cast<uint64_t>(verdict.ratio));
  if (verdict.z > 0) event_.Double(Name("z"), std::bit_cast<uint64_t>(verdict.z));
  event_.Uint(Name("executions"), verdict.executions);
  event_.Uint(Name("judged"), verdict.judged);
  event_.Uint(Name("cost_ns"), verdict.cost_ns);
  event_.Uint(Name("total_cost_ns"), verdict.total_cost_ns);
  event_.Uint(Name("step_ns"), verdict.step_ns);
  event_.Uint(Name("waiting"), verdict.waiting);
  if (verdict.exec_id != 0) event_.Uint(Name("exec_id"), verdict.exec_id);
  if (verdict.op_id != 0) event_.Uint(Name("op_id"), verdict.op_id);
  AddText("text", line.text);
  AddText("ruled_out", line.ruled_out);
  event_.Bool(Name("derived"), true);
}

// An uneven role and a slow collective have cores, but none of them is to blame: they are shown
// once, on the track of what names nobody.
void DerivedTracks::WriteVerdict(const Verdict& verdict, const InsightLine& line) {
  out_.StartOverIfDue();
  const Extent extent{verdict.since_ns, std::max(verdict.since_ns, verdict.until_ns)};
  const bool names_cores = verdict.kind != VerdictKind::kUnevenRole &&
                           verdict.kind != VerdictKind::kSlowCollective && !line.streams.empty();
  const std::string name =
      fmt::format("{} ({})", VerdictKindName(verdict.kind), InsightPhaseName(verdict.phase));
  const auto write_on = [&](SliceTrack& track, std::optional<int64_t> gid) {
    const uint32_t uuid = LaneFor(track, extent);
    if (uuid == 0) return;
    event_.Start(perfetto::EventType::kBegin, uuid);
    event_.Name(out_.side_interner().EventName(name));
    if (gid) event_.Int(Name("worker_gid"), *gid);
    AddFigures(verdict, line);
    WriteSlice(uuid, extent);
  };
  if (!names_cores) return write_on(answer_track_, std::nullopt);
  for (const uint32_t stream : line.streams) {
    out_.StartOverIfDue();
    SliceTrack& track = verdict_tracks_[stream];
    if (track.name.empty()) {
      track.name = CoreLabel(stream) + " verdicts (derived)";
      track.parent_uuid = tracks_.StreamUuid(stream);
      track.rank = track_rank::kVerdicts;
    }
    write_on(track, header_.streams[stream].rank.worker_gid);
  }
}

// An instant, because most refusals concern the whole time.
void DerivedTracks::WriteRefusal(const Refusal& refusal, const InsightLine& line, uint32_t uuid) {
  out_.StartOverIfDue();
  const uint64_t at_ns = refusal.begin_ns != 0 ? refusal.begin_ns : FirstShownNs();
  event_.Start(perfetto::EventType::kInstant, uuid);
  event_.Name(out_.side_interner().EventName(
      fmt::format("refused ({})", RefusalReasonName(refusal.reason))));
  event_.String(Name("reason"), RefusalReasonName(refusal.reason));
  event_.Uint(Name("cores"), line.streams.size());
  event_.Uint(Name("count"), refusal.count);
  if (refusal.refused_ns > 0) {
    event_.Uint(Name("gap_ns"), refusal.refused_ns);
  } else if (refusal.end_ns > at_ns) {
    event_.Uint(Name("gap_ns"), refusal.end_ns - at_ns);
  }
  AddText("text", line.text);
  AddText("missing", refusal.missing);
  event_.Bool(Name("derived"), true);
  out_.SideEvent(at_ns, event_.bytes());
}

uint64_t DerivedTracks::FirstShownNs() const {
  return std::max(header_.begin_ns, header_.filter->window_start_ns);
}

// Without cores there is nothing to judge, and no track. The first instant has what was judged, so
// that a trace without verdicts is not mistaken for one that nobody judged.
void DerivedTracks::WriteAnswer(const CaptureAnswer& answer) {
  const auto has_core = [](const TimelineStream& stream) {
    return stream.description.identity.has_core();
  };
  if (std::none_of(header_.streams.begin(), header_.streams.end(), has_core)) return;
  out_.StartOverIfDue();
  answer_track_.name = "verdicts (derived)";
  const uint32_t uuid = LaneFor(answer_track_, {FirstShownNs(), FirstShownNs()});
  event_.Start(perfetto::EventType::kInstant, uuid);
  event_.Name(out_.side_interner().EventName(answer.is_judged ? "judged" : "not judged"));
  event_.Uint(Name("cores"), answer.report.cores);
  event_.Uint(Name("cores_judged"), answer.report.cores_judged);
  event_.Uint(Name("executions"), answer.report.executions);
  AddText("text", answer.text);
  event_.Bool(Name("derived"), true);
  out_.SideEvent(FirstShownNs(), event_.bytes());
  for (size_t i = 0; i < answer.verdicts.size(); ++i) {
    WriteVerdict(answer.report.verdicts[i], answer.verdicts[i]);
  }
  for (size_t i = 0; i < answer.refusals.size(); ++i) {
    WriteRefusal(answer.report.refusals[i], answer.refusals[i], uuid);
  }
}

}  // namespace neurontrace
