// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/track_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "absl/strings/numbers.h"
#include "aggregator/export/pftrace/display_order.h"
#include "aggregator/export/pftrace/row_names.h"
#include "aggregator/export/pftrace/track_ranks.h"
#include "aggregator/export/row_source.h"

namespace neurontrace {
namespace {

namespace descriptor = perfetto::descriptor;

// Processes that were not known beforehand come after all that were.
constexpr int32_t kLatePid = 1'000'000;
// All processors of all hosts.
constexpr std::string_view kCpuAxis = "neurontrace_cpu";
// Stands for the physical cores beyond kCoresMax.
constexpr uint64_t kFurtherCores = UINT64_MAX;

}  // namespace

void TrackTable::Begin(const TimelineHeader& header) {
  header_ = &header;
  // The order of processes and of threads in each is ours.
  std::string root;
  protozero::pbf_writer writer(root);
  writer.add_uint64(descriptor::kUuid, 0);
  writer.add_enum(descriptor::kProcessOrdering, descriptor::kOrderingExplicit);
  writer.add_enum(descriptor::kThreadOrdering, descriptor::kOrderingExplicit);
  out_.TrackDescriptor(root);

  levels_.emplace(grouping_, header.streams);
  order_ = DisplayOrder(header.streams);
  places_.resize(order_.size());
  for (uint32_t place = 0; place < order_.size(); ++place) places_[order_[place]] = place;
  const bool are_known = !grouping_.primary_has(Grouping::Part::kThreadId);
  if (are_known) CollectRanks();
  for (const uint32_t stream : order_) {
    if (header.streams[stream].description.identity.kind == StreamKind::kFramework) {
      for (const auto& [process_id, names] : header.framework_names[stream].processes) {
        FrameworkProcess(stream, process_id);
      }
    } else if (are_known) {
      ProcessOf(stream, 0);
    }
  }
  // No thread shall have its process's number: that would make it the main thread.
  next_tid_ = 100;
  while (next_tid_ <= next_pid_) next_tid_ *= 10;
  next_pid_ = kLatePid;
}

uint32_t TrackTable::AddProcess(const std::string& key, std::string label,
                                const WorkerIdentity& worker, std::string_view labels) {
  const auto [known, is_new] = process_of_key_.try_emplace(key, processes_.size());
  if (!is_new) return known->second;
  if (label.empty()) label = "all";
  if (label_counts_[label]++ > 0) label = DisambiguatedLabel(label, worker);
  Process& process = processes_.emplace_back();
  process.uuid = next_uuid_++;
  process.pid = next_pid_++;
  process.label = std::move(label);
  const auto ranks = ranks_of_key_.find(key);
  if (ranks != ranks_of_key_.end()) {
    process.label += fmt::format(" [{}]", RanksText(std::move(ranks->second)));
  }
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, process.uuid);
  {
    protozero::pbf_writer about(writer, descriptor::kProcess);
    about.add_int32(descriptor::kProcessPid, process.pid);
    about.add_int32(descriptor::kProcessSortIndex, process.pid);
    about.add_string(descriptor::kProcessName, process.label);
    if (!labels.empty()) about.add_string(descriptor::kProcessLabels, labels.data(), labels.size());
  }
  writer.add_int32(descriptor::kSiblingOrderRank, process.pid);
  out_.TrackDescriptor(body);
  return known->second;
}

uint32_t TrackTable::ProcessOf(uint32_t stream, uint64_t thread_id) {
  const TimelineStream& about = header_->streams[stream];
  const WorkerIdentity& worker = about.description.identity.worker;
  if (about.description.identity.kind == StreamKind::kHost) return HostProcess(worker);
  const std::string label = grouping_.ProcessLabel(about, thread_id);
  return AddProcess(ProcessKey(stream, label), label, worker, {});
}

std::string TrackTable::ProcessKey(uint32_t stream, const std::string& label) const {
  if (!grouping_.primary_has(Grouping::Part::kProcessId)) return label;
  return label + "\n" + WorkerKey(header_->streams[stream].description.identity.worker);
}

void TrackTable::CollectRanks() {
  for (const uint32_t stream : order_) {
    const TimelineStream& about = header_->streams[stream];
    if (about.description.identity.kind == StreamKind::kFramework) continue;
    if (!about.rank.worker_gid) continue;
    ranks_of_key_[ProcessKey(stream, grouping_.ProcessLabel(about, 0))].push_back(
        *about.rank.worker_gid);
  }
}

uint32_t TrackTable::FrameworkProcess(uint32_t stream, const std::string& process_id) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  const auto& names = header_->framework_names[stream].processes;
  const auto named = names.find(process_id);
  std::string label = identity.worker.instance_id;
  if (!process_id.empty()) label += "-pid" + process_id;
  if (named != names.end() && !named->second.name.empty()) label += " " + named->second.name;
  label += fmt::format(" ({})", identity.name);
  if (header_->streams[stream].description.has_own_time()) label += kOwnTimeSuffix;
  const uint32_t process =
      AddProcess(fmt::format("framework\n{}\n{}", stream, process_id), std::move(label),
                 identity.worker, named == names.end() ? std::string_view() : named->second.labels);
  first_processes_.try_emplace(stream, process);
  return process;
}

uint32_t TrackTable::GroupUuid(uint32_t process, uint32_t stream,
                               std::optional<uint64_t> thread_id) {
  uint32_t parent_uuid = processes_[process].uuid;
  std::string path = fmt::format("{}", process);
  for (std::string& name : levels_->Of(stream, thread_id)) {
    path += "\n" + name;
    const auto [known, is_new] = groups_.try_emplace(path, 0);
    if (is_new) {
      known->second = DescribeChild({.parent_uuid = parent_uuid,
                                     .name = std::move(name),
                                     .rank = track_rank::OfGroup(places_[stream]),
                                     .orders_children = true});
    }
    parent_uuid = known->second;
  }
  return parent_uuid;
}

uint32_t TrackTable::AddFrameworkRow(uint32_t process, const RowKey& key, std::string name,
                                     uint64_t thread_id) {
  // Two threads of one name are two rows.
  const auto [known, is_new] = row_of_label_.try_emplace(
      fmt::format("{}\n{}\n{}", process, key.thread_id, name), rows_.size());
  if (!is_new) return known->second;
  TraceRow& row = rows_.emplace_back();
  row.process = process;
  row.stream = key.stream;
  row.source = key.source;
  row.name = std::move(name);
  row.thread_id = thread_id;
  row.lane_uuids.push_back(next_uuid_++);
  row.lane_parent_uuid = row.lane_uuids.front();
  const int64_t tid = next_tid_++;
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(descriptor::kUuid, row.lane_uuids.front());
  {
    protozero::pbf_writer about(writer, descriptor::kThread);
    about.add_int32(descriptor::kThreadPid, processes_[process].pid);
    about.add_int64(descriptor::kThreadTid, tid);
    about.add_int32(descriptor::kThreadSortIndex, static_cast<int32_t>(tid));
    about.add_string(descriptor::kThreadName, row.name);
  }
  writer.add_int32(descriptor::kSiblingOrderRank, static_cast<int32_t>(tid));
  out_.TrackDescriptor(body);
  return known->second;
}

uint32_t TrackTable::AddNeuronRow(uint32_t process, const RowKey& key,
                                  std::optional<uint64_t> core) {
  std::string name = grouping_.RowLabel(header_->streams[key.stream], key.thread_id);
  if (!name.empty()) name += '-';
  if (core) name += CoreRowName(*core) + "-";
  name += ToString(key.source);
  // Streams that the grouping does not tell apart share a row.
  const auto [known, is_new] =
      row_of_label_.try_emplace(fmt::format("{}\n{}", process, name), rows_.size());
  if (!is_new) return known->second;
  const uint32_t parent_uuid = GroupUuid(process, key.stream, key.thread_id);
  RowCounts& counts = row_counts_[parent_uuid];
  TraceRow& row = rows_.emplace_back();
  row.process = process;
  row.stream = key.stream;
  row.source = key.source;
  row.name = std::move(name);
  row.thread_id = key.thread_id;
  row.lane_parent_uuid = parent_uuid;
  row.rank = key.source == RowSource::kHardware
                 ? track_rank::OfHardwareRow(core ? *core : UINT64_MAX, counts.hardware++)
                 : track_rank::OfRuntimeRow(counts.runtime++);
  row.lane_uuids.push_back(
      DescribeChild({.parent_uuid = parent_uuid,
                     .name = row.name,
                     .description = core ? "coreN: the physical core (device_core_idx)" : "",
                     .rank = row.rank}));
  return known->second;
}

uint32_t TrackTable::RowForCore(std::vector<CoreRow>& rows, const RowKey& key,
                                std::optional<uint64_t> core) {
  for (const CoreRow& known : rows) {
    if (known.core == core) return known.row;
  }
  if (rows_.size() >= kRowsMax && !rows.empty()) return rows.back().row;
  if (core && core != kFurtherCores && rows.size() >= kCoresMax) {
    return RowForCore(rows, key, kFurtherCores);
  }
  const uint32_t row = AddNeuronRow(ProcessOf(key.stream, key.thread_id), key, core);
  rows.push_back({core, row});
  return row;
}

uint32_t TrackTable::NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                               std::optional<uint64_t> core) {
  RowKey key{stream, 0, thread_id, source};
  // The events of a logical core alternate between its physical ones.
  const size_t slot = 4 * size_t{stream} + (source == RowSource::kHardware ? 2 : 0) +
                      static_cast<size_t>(core.value_or(0) & 1);
  if (slot >= latest_.size()) latest_.resize(4 * header_->streams.size());
  LatestRow& latest = latest_[slot];
  if (latest.row != kNoRow && latest.core == core && latest.key == key) return latest.row;
  latest = {key, core, kNoRow};
  if (rows_.size() >= kRowsMax && !rows_of_key_.contains(key)) key.thread_id = UINT64_MAX;
  return latest.row = RowForCore(rows_of_key_[key], key, core);
}

uint32_t TrackTable::FrameworkRow(const TimelineRecord& record) {
  const std::string process_id = FrameworkProcessId(record);
  const std::string thread_id = FrameworkThreadId(record);
  RowKey key{record.stream, HashEventType(process_id), HashEventType(thread_id),
             RowSource::kFramework};
  if (rows_.size() >= kRowsMax && !rows_of_key_.contains(key)) {
    key = {record.stream, 0, UINT64_MAX, RowSource::kFramework};
  }
  auto& rows = rows_of_key_[key];
  if (!rows.empty()) return rows.front().row;
  const auto& names = header_->framework_names[record.stream].threads;
  const auto named = names.find({process_id, thread_id});
  const std::string name =
      (named == names.end() ? ThreadName(thread_id) : Trimmed(named->second)) + "-framework";
  const uint32_t process = FrameworkProcess(record.stream, process_id);
  const uint32_t row = AddFrameworkRow(process, key, name, record.thread_id);
  rows.push_back({std::nullopt, row});
  return row;
}

uint32_t TrackTable::DescribeChild(const Child& child) {
  const uint32_t uuid = next_uuid_++;
  out_.TrackDescriptor(SerializeTrack(uuid, child));
  return uuid;
}

uint32_t TrackTable::LaneUuid(uint32_t row, uint32_t lane) {
  TraceRow& about = rows_[row];
  while (lane >= about.lane_uuids.size()) {
    const size_t number = about.lane_uuids.size();
    about.lane_uuids.push_back(
        DescribeChild({.parent_uuid = about.lane_parent_uuid,
                       .name = fmt::format("{} (lane {})", about.name, number + 1),
                       .rank = about.rank + static_cast<int32_t>(number)}));
  }
  return about.lane_uuids[lane];
}

uint32_t TrackTable::CounterIn(uint32_t process, const std::string& name,
                               const Child& description) {
  const auto found = counters_.find({process, name});
  if (found != counters_.end()) return found->second;
  Child child = description;
  child.name = name;
  if (counters_.size() >= kRowsMax) {
    child = {.parent_uuid = processes_[process].uuid,
             .name = "further counters",
             .unit = Unit::kNone,
             .rank = track_rank::kCounter};
  }
  const auto [known, is_new] = counters_.try_emplace({process, child.name}, 0);
  if (is_new) known->second = DescribeChild(child);
  return known->second;
}

uint32_t TrackTable::CounterUuid(const TimelineRecord& record, const std::string& name) {
  const bool is_framework =
      header_->streams[record.stream].description.identity.kind == StreamKind::kFramework;
  const uint32_t process = is_framework
                               ? FrameworkProcess(record.stream, FrameworkProcessId(record))
                               : ProcessOf(record.stream, record.thread_id);
  return CounterIn(
      process, name,
      {.parent_uuid = processes_[process].uuid, .unit = Unit::kNone, .rank = track_rank::kCounter});
}

uint32_t TrackTable::HostProcess(const WorkerIdentity& host) {
  return AddProcess(fmt::format("host\n{}\n{}", host.instance_id, host.boot_id),
                    host.instance_id + " host", host, {});
}

uint32_t TrackTable::HostCounterUuid(const WorkerIdentity& host, const std::string& name, Unit unit,
                                     std::string_view axis) {
  const uint32_t process = HostProcess(host);
  return CounterIn(process, name,
                   {.parent_uuid = processes_[process].uuid,
                    .unit = unit,
                    .rank = track_rank::kCounter,
                    .axis = axis});
}

uint32_t TrackTable::HostCpuUuid(const WorkerIdentity& host, const std::string& cpu) {
  int32_t number = 0;
  if (!absl::SimpleAtoi(cpu, &number) || number < 0) {
    return HostCounterUuid(host, "CPU " + cpu, Unit::kPercent, kCpuAxis);
  }
  const uint32_t process = HostProcess(host);
  const auto [all, is_first] = host_cpus_.try_emplace(process, 0);
  if (is_first) {
    all->second = DescribeChild({.parent_uuid = processes_[process].uuid,
                                 .name = "CPU each",
                                 .rank = track_rank::kCounter,
                                 .orders_children = true});
  }
  return CounterIn(
      process, "CPU " + cpu,
      {.parent_uuid = all->second, .unit = Unit::kPercent, .rank = number, .axis = kCpuAxis});
}

uint32_t TrackTable::StreamUuid(uint32_t stream) {
  const StreamKind kind = header_->streams[stream].description.identity.kind;
  const uint32_t process = FirstProcess(stream);
  if (kind == StreamKind::kFramework || kind == StreamKind::kHost) return processes_[process].uuid;
  return GroupUuid(process, stream, std::nullopt);
}

uint32_t TrackTable::LossUuid(uint32_t stream) {
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

uint32_t TrackTable::FirstProcess(uint32_t stream) {
  if (header_->streams[stream].description.identity.kind != StreamKind::kFramework) {
    return ProcessOf(stream, 0);
  }
  const auto first = first_processes_.find(stream);
  if (first != first_processes_.end()) return first->second;
  const auto& named = header_->framework_names[stream].processes;
  return FrameworkProcess(stream, named.empty() ? std::string() : named.begin()->first);
}

ClockTrackUuids TrackTable::DescribeClock(const std::string& instance_id,
                                          const std::string& boot_id) {
  const auto is_here = [&](uint32_t stream) {
    const WorkerIdentity& worker = header_->streams[stream].description.identity.worker;
    return worker.instance_id == instance_id && worker.boot_id == boot_id;
  };
  const auto first = std::find_if(order_.begin(), order_.end(), is_here);
  if (first == order_.end()) return {};
  const uint32_t process = FirstProcess(*first);
  // Instances that the grouping does not tell apart, or boots of one, share a process.
  std::string about = clock_counts_[process]++ == 0 ? "" : " " + instance_id;
  ClockTrackUuids uuids;
  uuids.findings = DescribeChild({.parent_uuid = processes_[process].uuid,
                                  .name = "clock" + about,
                                  .description = "what was found out about the instance's clock",
                                  .rank = track_rank::kClock,
                                  .orders_children = true});
  uuids.bound = DescribeChild({.parent_uuid = uuids.findings,
                               .name = "clock bound" + about,
                               .unit = Unit::kNs,
                               .description = "how far the instance's times can be from the "
                                              "truth, in ns; -1: not known",
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
  const auto is_here = [&](uint32_t stream) {
    return header_->streams[stream].description.identity.worker.instance_id == instance_id;
  };
  const auto first = std::find_if(order_.begin(), order_.end(), is_here);
  return first == order_.end() ? 0 : processes_[FirstProcess(*first)].uuid;
}

uint32_t TrackTable::WarningUuid() {
  if (warning_uuid_ == 0) warning_uuid_ = DescribeChild({.name = "neurontrace warnings"});
  return warning_uuid_;
}

}  // namespace neurontrace
