// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/pftrace/track_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <protozero/pbf_writer.hpp>

#include "aggregator/export/pftrace/display_order.h"

namespace neurontrace {
namespace {

namespace fields = perfetto::descriptor;

// Thread numbers that each stream has for itself: for the runtime's rows, then the hardware's.
constexpr uint32_t kRuntimeTids = 24;
constexpr uint32_t kHardwareTids = 8;
// Processes that were not known beforehand come after all that were.
constexpr int32_t kLatePid = 1'000'000;
constexpr uint32_t kDescriptionCoreMax = 1u << 16;

std::string DisambiguatedLabel(const std::string& label, const WorkerIdentity& worker) {
  return worker.container_id.empty()
             ? fmt::format("{}-start{}", label, worker.start_time_ticks)
             : fmt::format("{}-container {}", label, worker.container_id.substr(0, 12));
}

// The name of a framework thread that its file does not name: files have words for ids, too.
std::string ThreadName(const std::string& thread_id) {
  if (thread_id.empty()) return "events";
  const bool is_number = thread_id.find_first_not_of("-0123456789") == std::string::npos;
  return is_number ? "tid" + thread_id : thread_id;
}

// Kineto's names end in a space.
std::string Trimmed(const std::string& name) {
  const size_t last = name.find_last_not_of(' ');
  return last == std::string::npos ? "unnamed" : name.substr(0, last + 1);
}

std::string WorkerKey(const WorkerIdentity& worker) {
  return fmt::format("{}\n{}\n{}\n{}\n{}", worker.instance_id, worker.boot_id, worker.pid,
                     worker.start_time_ticks, worker.container_id);
}

}  // namespace

void TrackTable::Begin(const TimelineHeader& header) {
  header_ = &header;
  // The order of processes and of threads in each is ours.
  std::string root;
  protozero::pbf_writer writer(root);
  writer.add_uint64(fields::kUuid, 0);
  writer.add_enum(fields::kProcessOrdering, fields::kOrderingExplicit);
  writer.add_enum(fields::kThreadOrdering, fields::kOrderingExplicit);
  out_.TrackDescriptor(root);

  order_ = DisplayOrder(header.streams);
  const bool are_known = !grouping_.primary_has(Grouping::Part::kThreadId);
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
  int64_t first_tid = 100;
  while (first_tid <= next_pid_) first_tid *= 10;
  next_pid_ = kLatePid;
  tids_.resize(order_.size());
  for (const uint32_t stream : order_) {
    tids_[stream].first = first_tid;
    first_tid += kRuntimeTids + kHardwareTids;
  }
  next_tid_ = first_tid;
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
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(fields::kUuid, process.uuid);
  {
    protozero::pbf_writer about(writer, fields::kProcess);
    about.add_int32(fields::kProcessPid, process.pid);
    about.add_int32(fields::kProcessSortIndex, process.pid);
    about.add_string(fields::kProcessName, process.label);
    if (!labels.empty()) about.add_string(fields::kProcessLabels, labels.data(), labels.size());
  }
  writer.add_int32(fields::kSiblingOrderRank, process.pid);
  out_.TrackDescriptor(body);
  return known->second;
}

uint32_t TrackTable::ProcessOf(uint32_t stream, uint64_t thread_id) {
  const TimelineStream& about = header_->streams[stream];
  const WorkerIdentity& worker = about.description.identity.worker;
  if (about.description.identity.kind == StreamKind::kHost) return HostProcess(worker);
  std::string label = grouping_.ProcessLabel(about, thread_id);
  std::string key = label;
  if (grouping_.primary_has(Grouping::Part::kProcessId)) key += "\n" + WorkerKey(worker);
  return AddProcess(key, std::move(label), worker, {});
}

uint32_t TrackTable::FrameworkProcess(uint32_t stream, const std::string& process_id) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  const auto& names = header_->framework_names[stream].processes;
  const auto named = names.find(process_id);
  std::string label = identity.worker.instance_id;
  if (!process_id.empty()) label += "-pid" + process_id;
  if (named != names.end() && !named->second.name.empty()) label += " " + named->second.name;
  label += fmt::format(" ({})", identity.name);
  return AddProcess(fmt::format("framework\n{}\n{}", stream, process_id), std::move(label),
                    identity.worker,
                    named == names.end() ? std::string_view() : named->second.labels);
}

int64_t TrackTable::NextTid(uint32_t stream, RowSource source) {
  StreamTids& tids = tids_[stream];
  if (source == RowSource::kHardware && tids.hardware < kHardwareTids) {
    return tids.first + kRuntimeTids + tids.hardware++;
  }
  if (source != RowSource::kHardware && tids.runtime < kRuntimeTids) {
    return tids.first + tids.runtime++;
  }
  return next_tid_++;
}

uint32_t TrackTable::AddRow(uint32_t process, const RowKey& key, std::string name,
                            uint64_t thread_id, size_t core_number, std::optional<uint64_t> core) {
  // Streams that the grouping does not tell apart share a row.
  const auto [known, is_new] = row_of_label_.try_emplace(
      fmt::format("{}\n{}\n{}", process, core_number, name), rows_.size());
  if (!is_new) return known->second;
  TraceRow& row = rows_.emplace_back();
  row.process = process;
  row.stream = key.stream;
  row.source = key.source;
  row.name = std::move(name);
  row.thread_id = thread_id;
  row.lane_uuids.push_back(next_uuid_++);
  const int64_t tid = NextTid(key.stream, key.source);
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(fields::kUuid, row.lane_uuids.front());
  {
    protozero::pbf_writer about(writer, fields::kThread);
    about.add_int32(fields::kThreadPid, processes_[process].pid);
    about.add_int64(fields::kThreadTid, tid);
    about.add_int32(fields::kThreadSortIndex, static_cast<int32_t>(tid));
    about.add_string(fields::kThreadName, row.name);
  }
  writer.add_int32(fields::kSiblingOrderRank, static_cast<int32_t>(tid));
  if (core && *core < kDescriptionCoreMax) {
    writer.add_string(fields::kDescription,
                      fmt::format("physical core {} (device_core_idx)", *core));
  }
  out_.TrackDescriptor(body);
  return known->second;
}

uint32_t TrackTable::RowForCore(std::vector<CoreRow>& rows, const RowKey& key,
                                std::optional<uint64_t> core) {
  for (CoreRow& known : rows) {
    // An event that does not name its core stands with the first; the first may have been such.
    if (!core || known.core == core) return known.row;
    if (!known.core) {
      known.core = core;
      return known.row;
    }
  }
  const TimelineStream& about = header_->streams[key.stream];
  std::string name = grouping_.RowLabel(about, key.thread_id);
  if (!name.empty()) name += '-';
  name += ToString(key.source);
  const uint32_t row = AddRow(ProcessOf(key.stream, key.thread_id), key, std::move(name),
                              key.thread_id, rows.size(), core);
  rows.push_back({core, row});
  return row;
}

uint32_t TrackTable::NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                               std::optional<uint64_t> core) {
  RowKey key{stream, 0, thread_id, source};
  const size_t slot = 2 * size_t{stream} + (source == RowSource::kHardware ? 1 : 0);
  if (slot >= latest_.size()) latest_.resize(2 * header_->streams.size());
  auto& [latest_key, latest_row] = latest_[slot];
  if (!core && latest_row != 0 && latest_key == key) return latest_row - 1;
  if (rows_.size() >= kRowsMax && !rows_of_key_.contains(key)) key.thread_id = UINT64_MAX;
  const uint32_t row = RowForCore(rows_of_key_[key], key, core);
  if (!core) latest_[slot] = {key, row + 1};
  return row;
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
  // Two threads of one name are two rows.
  const uint32_t row = AddRow(process, key, name, record.thread_id, key.thread_id, std::nullopt);
  rows.push_back({std::nullopt, row});
  return row;
}

uint32_t TrackTable::DescribeChild(const Child& child) {
  const uint32_t uuid = next_uuid_++;
  std::string body;
  protozero::pbf_writer writer(body);
  writer.add_uint64(fields::kUuid, uuid);
  writer.add_string(fields::kName, child.name);
  if (child.parent_uuid != 0) writer.add_uint64(fields::kParentUuid, child.parent_uuid);
  writer.add_enum(fields::kSiblingMergeBehavior, fields::kMergeNone);
  if (!child.description.empty()) {
    writer.add_string(fields::kDescription, child.description.data(), child.description.size());
  }
  if (child.unit != Unit::kNoCounter) {
    std::string counter;  // also where it says nothing more
    protozero::pbf_writer about(counter);
    switch (child.unit) {
      case Unit::kNs:
        about.add_enum(fields::kCounterUnit, fields::kCounterUnitNs);
        break;
      case Unit::kBytes:
        about.add_enum(fields::kCounterUnit, fields::kCounterUnitBytes);
        break;
      case Unit::kBytesPerSecond:
        about.add_string(fields::kCounterUnitName, "B/s");
        break;
      case Unit::kPercent:
        about.add_string(fields::kCounterUnitName, "%");
        break;
      case Unit::kNone:
      case Unit::kNoCounter:
        break;
    }
    writer.add_message(fields::kCounter, counter);
  }
  out_.TrackDescriptor(body);
  return uuid;
}

uint32_t TrackTable::LaneUuid(uint32_t row, uint32_t lane) {
  TraceRow& about = rows_[row];
  while (lane >= about.lane_uuids.size()) {
    about.lane_uuids.push_back(DescribeChild(
        {.parent_uuid = about.lane_uuids.front(),
         .name = fmt::format("{} (lane {})", about.name, about.lane_uuids.size() + 1)}));
  }
  return about.lane_uuids[lane];
}

uint32_t TrackTable::CounterUuid(uint32_t row, const std::string& name) {
  const uint32_t process = rows_[row].process;
  const bool is_too_many = counters_.size() >= kRowsMax;
  const auto [known, is_new] =
      counters_.try_emplace({process, is_too_many ? "further counters" : name}, 0);
  if (is_new) {
    known->second = DescribeChild({.parent_uuid = processes_[process].uuid,
                                   .name = known->first.second,
                                   .unit = Unit::kNone});
  }
  return known->second;
}

uint32_t TrackTable::HostProcess(const WorkerIdentity& host) {
  return AddProcess(fmt::format("host\n{}\n{}", host.instance_id, host.boot_id),
                    host.instance_id + " host", host, {});
}

uint32_t TrackTable::HostCounterUuid(const WorkerIdentity& host, const std::string& name,
                                     Unit unit) {
  const uint32_t process = HostProcess(host);
  const bool is_too_many = counters_.size() >= kRowsMax;
  const auto [known, is_new] =
      counters_.try_emplace({process, is_too_many ? "further counters" : name}, 0);
  if (is_new) {
    known->second = DescribeChild(
        {.parent_uuid = processes_[process].uuid, .name = known->first.second, .unit = unit});
  }
  return known->second;
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
      {.parent_uuid = processes_[ProcessOf(stream, 0)].uuid, .name = name + "-losses"});
  return known->second;
}

uint32_t TrackTable::FirstProcess(uint32_t stream) {
  if (header_->streams[stream].description.identity.kind == StreamKind::kFramework) {
    const auto& named = header_->framework_names[stream].processes;
    if (!named.empty()) return FrameworkProcess(stream, named.begin()->first);
  }
  return ProcessOf(stream, 0);
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
                                  .description = "what was found out about the instance's clock"});
  uuids.bound = DescribeChild({.parent_uuid = uuids.findings,
                               .name = "clock bound" + about,
                               .unit = Unit::kNs,
                               .description = "how far the instance's times can be from the "
                                              "truth, in ns; -1: not known"});
  uuids.correction = DescribeChild({.parent_uuid = uuids.findings,
                                    .name = "clock correction" + about,
                                    .unit = Unit::kNs,
                                    .description = "reference clock minus the instance's "
                                                   "CLOCK_REALTIME, in ns"});
  return uuids;
}

uint32_t TrackTable::InstanceUuid(const std::string& instance_id) {
  const auto is_here = [&](uint32_t stream) {
    return header_->streams[stream].description.identity.worker.instance_id == instance_id;
  };
  const auto first = std::find_if(order_.begin(), order_.end(), is_here);
  return first == order_.end() ? 0 : ProcessUuid(*first);
}

uint32_t TrackTable::WarningUuid() {
  if (warning_uuid_ == 0) warning_uuid_ = DescribeChild({.name = "neurontrace warnings"});
  return warning_uuid_;
}

}  // namespace neurontrace
