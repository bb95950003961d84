// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/track_table.h"

#include <fmt/format.h>

#include <cassert>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "aggregator/export/pftrace/perfetto_fields.h"
#include "aggregator/export/pftrace/track_ranks.h"
#include "aggregator/export/row_source.h"
#include "aggregator/export/rows/row_names.h"

namespace neurontrace {
namespace {

namespace descriptor = perfetto::descriptor;

// Tracks are described by TrackDescriptor packets:
// https://perfetto.dev/docs/reference/synthetic-track-event. A uuid is a counter, so that a parent
// always has a smaller one than its children.

// Units without a value in Perfetto's enum are written by name.
std::string SerializeCounter(TrackUnit unit, std::string_view axis) {
  std::string counter;
  protozero::pbf_writer about(counter);
  switch (unit) {
    case TrackUnit::kNs:
      about.add_enum(descriptor::kCounterUnit, descriptor::kCounterUnitNs);
      break;
    case TrackUnit::kBytes:
      about.add_enum(descriptor::kCounterUnit, descriptor::kCounterUnitBytes);
      break;
    case TrackUnit::kBytesPerSecond:
      about.add_string(descriptor::kCounterUnitName, "B/s");
      break;
    case TrackUnit::kPercent:
      about.add_string(descriptor::kCounterUnitName, "%");
      break;
    case TrackUnit::kNone:
    case TrackUnit::kNoCounter:
      break;
  }
  if (!axis.empty()) about.add_string(descriptor::kCounterAxis, axis.data(), axis.size());
  return counter;
}

// Returns the fields of the track's TrackDescriptor. A pure function.
std::string SerializeTrack(uint32_t uuid, const ChildTrack& track) {
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, uuid);
  writer.add_string(descriptor::kName, track.name);
  if (track.parent_uuid != 0) writer.add_uint64(descriptor::kParentUuid, track.parent_uuid);
  if (track.orders_children)
    writer.add_enum(descriptor::kChildOrdering, descriptor::kChildrenByRank);
  if (track.rank != 0) writer.add_int32(descriptor::kSiblingOrderRank, track.rank);
  writer.add_enum(descriptor::kSiblingMergeBehavior, descriptor::kMergeNone);
  if (!track.description.empty()) {
    writer.add_string(descriptor::kDescription, track.description.data(), track.description.size());
  }
  // Even without a unit: the presence of the message makes the track a counter.
  if (track.unit != TrackUnit::kNoCounter) {
    writer.add_message(descriptor::kCounter, SerializeCounter(track.unit, track.axis));
  }
  return body;
}

namespace descriptor = perfetto::descriptor;

// Processes that were not known beforehand follow all that were.
constexpr int32_t kLatePid = 1'000'000;
// The common axis of all processors of all hosts.
constexpr std::string_view kCpuAxis = "neurontrace_cpu";

}  // namespace

// Processes are described in the order of display, which gives them ascending numbers.
void TrackTable::Begin(const TimelineHeader& header) {
  header_ = &header;
  // Without this descriptor Perfetto would sort processes and threads its own way.
  std::string root;
  protozero::pbf_writer writer(root);
  writer.add_uint64(descriptor::kUuid, 0);
  writer.add_enum(descriptor::kProcessOrdering, descriptor::kOrderingExplicit);
  writer.add_enum(descriptor::kThreadOrdering, descriptor::kOrderingExplicit);
  out_.TrackDescriptor(root);

  levels_.emplace(grouping_, header.streams);
  // With threads in the primary grouping, processes are known only from events.
  const bool are_known = !grouping_.primary_has(Grouping::Part::kThreadId);
  for (const uint32_t stream : model_.streams()) {
    const TimelineStream& about = header.streams[stream];
    if (about.description.identity.kind == StreamKind::kFramework) {
      for (const auto& [process_id, names] : header.framework_names[stream].processes) {
        model_.FrameworkProcess(stream, process_id);
      }
    } else if (are_known) {
      const uint32_t process = model_.ProcessOf(stream);
      if (about.rank.worker_gid) ranks_[process].push_back(*about.rank.worker_gid);
    }
  }
  DescribeNew();
  // No thread may have its process's number: that would make it the main thread.
  next_tid_ = 100;
  while (next_tid_ <= next_pid_) next_tid_ *= 10;
  assert(next_tid_ > next_pid_);
  next_pid_ = kLatePid;
}

void TrackTable::DescribeNew() {
  while (processes_.size() < model_.processes()) {
    DescribeProcess(static_cast<uint32_t>(processes_.size()));
  }
  while (rows_.size() < model_.rows()) {
    const ExportRow& about = model_.row(static_cast<uint32_t>(rows_.size()));
    TraceRow& row = rows_.emplace_back();
    row.source = about.source;
    if (about.source == RowSource::kFramework) {
      DescribeThread(about, row);
    } else {
      DescribeTrack(about, row);
    }
  }
}

// The name lists the ranks of the process; the labels are those of framework files.
void TrackTable::DescribeProcess(uint32_t process) {
  assert(process == processes_.size());
  const ExportProcess& about = model_.process(process);
  const Process& added = processes_.emplace_back(Process{next_uuid_++, next_pid_++});
  std::string name = about.label;
  if (const auto ranks = ranks_.find(process); ranks != ranks_.end()) {
    name += fmt::format(" [{}]", RanksText(std::move(ranks->second)));
  }
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, added.uuid);
  {
    protozero::pbf_writer inner(writer, descriptor::kProcess);
    inner.add_int32(descriptor::kProcessPid, added.pid);
    inner.add_int32(descriptor::kProcessSortIndex, added.pid);
    inner.add_string(descriptor::kProcessName, name);
    if (!about.labels.empty()) inner.add_string(descriptor::kProcessLabels, about.labels);
  }
  writer.add_int32(descriptor::kSiblingOrderRank, added.pid);
  out_.TrackDescriptor(body);
}

const TrackTable::Process& TrackTable::ProcessAt(uint32_t process) {
  if (process >= processes_.size()) DescribeNew();
  assert(process < processes_.size());
  return processes_[process];
}

// The path from the process down identifies a group; each level is described once.
uint32_t TrackTable::GroupUuid(uint32_t process, uint32_t stream,
                               std::optional<uint64_t> thread_id) {
  assert(levels_.has_value());  // after Begin
  uint32_t parent_uuid = ProcessAt(process).uuid;
  std::string path = fmt::format("{}", process);
  for (std::string& name : levels_->Of(stream, thread_id)) {
    path += "\n" + name;
    const auto [known, is_new] = groups_.try_emplace(path, 0);
    if (is_new) {
      known->second = DescribeChild({.parent_uuid = parent_uuid,
                                     .name = std::move(name),
                                     .rank = track_rank::ForGroup(model_.order(stream)),
                                     .orders_children = true});
    }
    parent_uuid = known->second;
  }
  return parent_uuid;
}

// Rows of frameworks are threads, see docs/decisions/0027.
void TrackTable::DescribeThread(const ExportRow& about, TraceRow& row) {
  assert(about.process < processes_.size() && row.lane_uuids.empty());
  row.lane_uuids.push_back(next_uuid_++);
  row.lane_parent_uuid = row.lane_uuids.front();
  const int64_t tid = next_tid_++;
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, row.lane_uuids.front());
  {
    protozero::pbf_writer inner(writer, descriptor::kThread);
    inner.add_int32(descriptor::kThreadPid, processes_[about.process].pid);
    inner.add_int64(descriptor::kThreadTid, tid);
    inner.add_int32(descriptor::kThreadSortIndex, static_cast<int32_t>(tid));
    inner.add_string(descriptor::kThreadName, about.name);
  }
  writer.add_int32(descriptor::kSiblingOrderRank, static_cast<int32_t>(tid));
  out_.TrackDescriptor(body);
}

// A row of the runtime or of the hardware is a plain track below its group.
void TrackTable::DescribeTrack(const ExportRow& about, TraceRow& row) {
  assert(row.lane_uuids.empty());
  row.lane_parent_uuid = GroupUuid(about.process, about.stream, about.thread_id);
  RowCounts& counts = row_counts_[row.lane_parent_uuid];
  row.rank = about.source == RowSource::kHardware
                 ? track_rank::ForHardwareRow(about.core.value_or(UINT64_MAX), counts.hardware++)
                 : track_rank::ForRuntimeRow(counts.runtime++);
  row.lane_uuids.push_back(
      DescribeChild({.parent_uuid = row.lane_parent_uuid,
                     .name = about.name,
                     .description = about.core ? "coreN: the physical core (device_core_idx)" : "",
                     .rank = row.rank}));
}

uint32_t TrackTable::DescribeChild(const Child& child) {
  const uint32_t uuid = next_uuid_++;
  assert(uuid != 0 && child.parent_uuid < uuid);
  out_.TrackDescriptor(SerializeTrack(uuid, child));
  return uuid;
}

// Lanes are described in their order, so that a new one describes those before it, too.
uint32_t TrackTable::LaneUuid(uint32_t row, uint32_t lane) {
  assert(row < rows_.size() && !rows_[row].lane_uuids.empty());
  TraceRow& about = rows_[row];
  while (lane >= about.lane_uuids.size()) {
    const size_t number = about.lane_uuids.size();
    about.lane_uuids.push_back(
        DescribeChild({.parent_uuid = about.lane_parent_uuid,
                       .name = fmt::format("{} (lane {})", model_.row(row).name, number + 1),
                       .rank = about.rank + static_cast<int32_t>(number)}));
  }
  return about.lane_uuids[lane];
}

// The limit bounds the memory and the file for a hostile number of names.
uint32_t TrackTable::CounterIn(uint32_t process, const std::string& name,
                               const Child& description) {
  const auto found = counters_.find({process, name});
  if (found != counters_.end()) return found->second;
  Child child = description;
  child.name = name;
  if (child.parent_uuid == 0) child.parent_uuid = ProcessAt(process).uuid;
  if (counters_.size() >= RowModel::kRowsMax) {
    child = {.parent_uuid = ProcessAt(process).uuid,
             .name = "further counters",
             .unit = Unit::kNone,
             .rank = track_rank::kCounter};
  }
  const auto [known, is_new] = counters_.try_emplace({process, child.name}, 0);
  if (is_new) known->second = DescribeChild(child);
  return known->second;
}

uint32_t TrackTable::CounterUuid(const TimelineRecord& record, const std::string& name) {
  return CounterIn(model_.ProcessOf(record), name,
                   {.unit = Unit::kNone, .rank = track_rank::kCounter});
}

uint32_t TrackTable::HostCounterUuid(uint32_t stream, const std::string& name, Unit unit,
                                     std::string_view axis) {
  return CounterIn(model_.ProcessOf(stream), name,
                   {.unit = unit, .rank = track_rank::kCounter, .axis = axis});
}

uint32_t TrackTable::HostCpuUuid(uint32_t stream, const std::string& cpu) {
  int32_t number = 0;
  // The average of all processors is not one of them.
  if (!absl::SimpleAtoi(cpu, &number) || number < 0) {
    return HostCounterUuid(stream, "CPU " + cpu, Unit::kPercent, kCpuAxis);
  }
  const uint32_t process = model_.ProcessOf(stream);
  const auto [all, is_first] = host_cpus_.try_emplace(process, 0);
  if (is_first) {
    all->second = DescribeChild({.parent_uuid = ProcessAt(process).uuid,
                                 .name = "CPU each",
                                 .rank = track_rank::kCounter,
                                 .orders_children = true});
  }
  return CounterIn(
      process, "CPU " + cpu,
      {.parent_uuid = all->second, .unit = Unit::kPercent, .rank = number, .axis = kCpuAxis});
}

uint32_t TrackTable::StreamUuid(uint32_t stream) {
  assert(header_ != nullptr && stream < header_->streams.size());
  const StreamKind kind = header_->streams[stream].description.identity.kind;
  const uint32_t process = model_.ProcessOf(stream);
  // Their processes have no levels of workers and cores.
  if (kind == StreamKind::kFramework || kind == StreamKind::kHost) return ProcessAt(process).uuid;
  return GroupUuid(process, stream, std::nullopt);
}

// A stream without losses gets no track.
uint32_t TrackTable::LossUuid(uint32_t stream) {
  assert(header_ != nullptr && stream < header_->streams.size());
  const auto [known, is_new] = losses_.try_emplace(stream, 0);
  if (!is_new) return known->second;
  const TimelineStream& about = header_->streams[stream];
  const StreamIdentity& identity = about.description.identity;
  std::string name = about.rank.label;
  if (!name.empty()) name += '-';
  if (identity.has_core()) {
    name += fmt::format("nc{}", identity.nc_idx);
  } else {
    name += identity.name.empty() ? "worker" : identity.name;
  }
  known->second = DescribeChild(
      {.parent_uuid = StreamUuid(stream), .name = name + "-losses", .rank = track_rank::kLosses});
  return known->second;
}

template <typename Predicate>
std::optional<uint32_t> TrackTable::FirstStream(Predicate has) const {
  assert(header_ != nullptr);
  for (const uint32_t stream : model_.streams()) {
    if (has(header_->streams[stream].description.identity.worker)) return stream;
  }
  return std::nullopt;
}

// Returns zeros if the trace has no stream of that boot.
ClockTrackUuids TrackTable::DescribeClock(const std::string& instance_id,
                                          const std::string& boot_id) {
  const auto first = FirstStream([&](const WorkerIdentity& worker) {
    return worker.instance_id == instance_id && worker.boot_id == boot_id;
  });
  if (!first) return {};
  const uint32_t process = model_.ProcessOf(*first);
  // Instances that the grouping does not distinguish, or boots of one, share a process.
  std::string about = clock_counts_[process]++ == 0 ? "" : " " + instance_id;
  ClockTrackUuids uuids;
  uuids.findings = DescribeChild({.parent_uuid = ProcessAt(process).uuid,
                                  .name = "clock" + about,
                                  .description = "findings about the instance's clock",
                                  .rank = track_rank::kClock,
                                  .orders_children = true});
  uuids.bound = DescribeChild({.parent_uuid = uuids.findings,
                               .name = "clock bound" + about,
                               .unit = Unit::kNs,
                               .description = "largest error of the instance's times in "
                                              "ns; -1 if unknown",
                               .rank = 1});
  uuids.correction = DescribeChild({.parent_uuid = uuids.findings,
                                    .name = "clock correction" + about,
                                    .unit = Unit::kNs,
                                    .description = "reference clock minus the instance's "
                                                   "CLOCK_REALTIME, in ns",
                                    .rank = 2});
  return uuids;
}

uint32_t TrackTable::InstanceUuid(const std::string& instance_id) {
  const auto first =
      FirstStream([&](const WorkerIdentity& worker) { return worker.instance_id == instance_id; });
  return first ? ProcessAt(model_.ProcessOf(*first)).uuid : 0;
}

uint32_t TrackTable::WarningUuid() {
  if (warning_uuid_ == 0) warning_uuid_ = DescribeChild({.name = "neurontrace warnings"});
  return warning_uuid_;
}

}  // namespace neurontrace
