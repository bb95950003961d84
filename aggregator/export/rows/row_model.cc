// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/row_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <numeric>
#include <tuple>

#include "aggregator/export/rows/row_names.h"
#include "aggregator/timeline/device_stamp.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

using WorkerTuple = std::tuple<std::string, std::string, uint32_t, uint64_t, std::string>;

// For keys of hash tables and for a total order over workers without a rank.
WorkerTuple TupleOf(const WorkerIdentity& worker) {
  return {worker.instance_id, worker.boot_id, worker.pid, worker.start_time_ticks,
          worker.container_id};
}

// Compared member by member in the order of their declaration, which is the order of display.
// Streams without a rank have INT64_MAX and come last.
struct DisplayKey {
  int64_t instance_gid = INT64_MAX;
  std::string instance_id;
  int64_t worker_gid = INT64_MAX;  // the worker's lowest
  WorkerTuple worker;
  StreamKind kind = StreamKind::kUnspecified;
  int64_t gid = INT64_MAX;
  uint32_t nc_idx = 0;
  std::string name;
  friend auto operator<=>(const DisplayKey&, const DisplayKey&) = default;
};

// Returns the stream's rank, or a value that sorts behind all ranks.
int64_t GidOf(const TimelineStream& stream) { return stream.rank.worker_gid.value_or(INT64_MAX); }

// Represents the physical cores beyond kCoresMax.
constexpr uint64_t kFurtherCores = UINT64_MAX;

// Returns the physical core that a hardware event names.
std::optional<uint64_t> CoreOf(const TimelineRecord& record) {
  const auto key = DeviceCoreKey(record.start());
  if (!key) return std::nullopt;
  return record.values[*key];
}

}  // namespace

std::vector<uint32_t> DisplayOrder(std::span<const TimelineStream> streams) {
  absl::flat_hash_map<std::string, int64_t> instance_gids;
  absl::flat_hash_map<WorkerTuple, int64_t> worker_gids;
  // Instances and workers are ordered by their lowest rank, so that rank 0 is at the top.
  const auto lower = [](auto& gids, const auto& key, int64_t gid) {
    const auto [known, is_new] = gids.try_emplace(key, gid);
    known->second = std::min(known->second, gid);
  };
  for (const TimelineStream& stream : streams) {
    const WorkerIdentity& worker = stream.description.identity.worker;
    lower(instance_gids, worker.instance_id, GidOf(stream));
    lower(worker_gids, TupleOf(worker), GidOf(stream));
  }
  std::vector<DisplayKey> keys;
  keys.reserve(streams.size());
  for (const TimelineStream& stream : streams) {
    const StreamIdentity& id = stream.description.identity;
    WorkerTuple worker = TupleOf(id.worker);
    const int64_t worker_gid = worker_gids[worker];
    keys.push_back({.instance_gid = instance_gids[id.worker.instance_id],
                    .instance_id = id.worker.instance_id,
                    .worker_gid = worker_gid,
                    .worker = std::move(worker),
                    .kind = id.kind,
                    .gid = GidOf(stream),
                    .nc_idx = id.nc_idx,
                    .name = id.name});
  }
  std::vector<uint32_t> order(streams.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&keys](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  return order;
}

void RowModel::Begin(const TimelineHeader& header) {
  header_ = &header;
  is_hardware_only_ = header.filter->event_types.selects_only_hardware();
  streams_ = DisplayOrder(header.streams);
  places_.resize(streams_.size());
  for (uint32_t place = 0; place < streams_.size(); ++place) places_[streams_[place]] = place;
  latest_.resize(kSlots * streams_.size());
}

// Returns the process with this key, or adds it under a label that no other process has.
uint32_t RowModel::AddProcess(const std::string& key, ExportProcess process) {
  const auto [known, is_new] = process_of_key_.try_emplace(key, processes_.size());
  if (!is_new) return known->second;
  if (process.label.empty()) process.label = "all";
  // Readers could not tell two processes with one label apart.
  if (label_counts_[process.label]++ > 0) {
    process.label = DisambiguatedLabel(
        process.label, header_->streams[process.stream].description.identity.worker);
  }
  processes_.push_back(std::move(process));
  return known->second;
}

uint32_t RowModel::NeuronProcess(uint32_t stream, uint64_t thread_id) {
  const TimelineStream& about = header_->streams[stream];
  std::string label = grouping_.ProcessLabel(about, thread_id);
  // The label alone would merge processes that only differ in what the grouping omits: with the
  // process id in the grouping they must stay separate.
  std::string key = label;
  if (grouping_.primary_has(Grouping::Part::kProcessId)) {
    key += "\n" + WorkerKey(about.description.identity.worker);
  }
  return AddProcess(key, {.label = std::move(label), .stream = stream});
}

uint32_t RowModel::FrameworkProcess(uint32_t stream, const std::string& process_id) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  const auto& names = header_->framework_names[stream].processes;
  const auto named = names.find(process_id);
  std::string label = identity.worker.instance_id;
  if (!process_id.empty()) label += "-pid" + process_id;
  if (named != names.end() && !named->second.name.empty()) label += " " + named->second.name;
  label += fmt::format(" ({})", identity.name);
  if (header_->streams[stream].description.has_own_time()) label += kOwnTimeSuffix;
  const uint32_t process =
      AddProcess(fmt::format("framework\n{}\n{}", stream, process_id),
                 {.label = std::move(label),
                  .labels = named == names.end() ? std::string() : named->second.labels,
                  .stream = stream});
  // What concerns the file as a whole is shown in the process that appears first.
  first_processes_.try_emplace(stream, process);
  return process;
}

// A host's samples get a process for each boot; a framework's file may have several processes.
uint32_t RowModel::ProcessOf(uint32_t stream) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  if (identity.kind == StreamKind::kHost) {
    const WorkerIdentity& host = identity.worker;
    return AddProcess(fmt::format("host\n{}\n{}", host.instance_id, host.boot_id),
                      {.label = host.instance_id + " host", .stream = stream});
  }
  if (identity.kind != StreamKind::kFramework) return NeuronProcess(stream, 0);
  if (const auto first = first_processes_.find(stream); first != first_processes_.end()) {
    return first->second;
  }
  const auto& named = header_->framework_names[stream].processes;
  return FrameworkProcess(stream, named.empty() ? std::string() : named.begin()->first);
}

uint32_t RowModel::ProcessOf(const TimelineRecord& record) {
  const StreamKind kind = header_->streams[record.stream].description.identity.kind;
  if (kind == StreamKind::kFramework) {
    return FrameworkProcess(record.stream, FrameworkProcessId(record));
  }
  return kind == StreamKind::kHost ? ProcessOf(record.stream)
                                   : NeuronProcess(record.stream, record.thread_id);
}

uint32_t RowModel::AddRow(ExportRow row, std::string_view key) {
  const auto [known, is_new] =
      row_of_name_.try_emplace(fmt::format("{}\n{}\n{}", row.process, key, row.name), rows_.size());
  if (!is_new) return known->second;
  // For one core the runtime's rows precede those of the hardware.
  row.order = 2 * places_[row.stream] + (row.source == RowSource::kHardware ? 1 : 0);
  rows_.push_back(std::move(row));
  return known->second;
}

// Shared rows are added even beyond kRowsMax: there is one for each stream and source at most.
uint32_t RowModel::SharedRow(uint32_t stream, RowSource source) {
  const Key key{.stream = stream, .source = source, .is_shared = true};
  if (const auto known = row_of_.find(key); known != row_of_.end()) return known->second;
  ExportRow row{.process = ProcessOf(stream),
                .stream = stream,
                .source = source,
                .name = fmt::format("further rows-{}", ToString(source))};
  return row_of_[key] = AddRow(std::move(row), "shared");
}

// The limits hold for hostile captures, in which every event could name another thread or core.
uint32_t RowModel::FindNeuronRow(const Key& key) {
  if (const auto known = row_of_.find(key); known != row_of_.end()) return known->second;
  if (rows_.size() >= kRowsMax) return SharedRow(key.stream, key.source);
  if (key.core && *key.core != kFurtherCores) {
    Key thread = key;
    thread.core.reset();
    size_t& cores = cores_[thread];
    if (cores >= kCoresMax) {
      thread.core = kFurtherCores;
      return FindNeuronRow(thread);
    }
    ++cores;
  }
  // The name follows the vendor's: the grouping's label, the physical core, and the source.
  ExportRow row{.process = NeuronProcess(key.stream, key.thread_id),
                .stream = key.stream,
                .source = key.source,
                .name = grouping_.RowLabel(header_->streams[key.stream], key.thread_id),
                .thread_id = key.thread_id,
                .core = key.core};
  if (!row.name.empty()) row.name += '-';
  if (key.core) row.name += CoreRowName(*key.core) + "-";
  row.name += ToString(key.source);
  // The name is the key: streams that the grouping does not distinguish share a row.
  return row_of_[key] = AddRow(std::move(row), "");
}

uint32_t RowModel::NeuronRow(uint32_t stream, uint64_t thread_id, RowSource source,
                             std::optional<uint64_t> core) {
  const Key key{.stream = stream, .thread_id = thread_id, .source = source, .core = core};
  // The events of a logical core alternate between its two physical ones, and those of its process
  // between a few threads: a slot for each avoids looking the row up at every event.
  const size_t slot = kSlots * size_t{stream} + (source == RowSource::kHardware ? kSlots / 2 : 0) +
                      static_cast<size_t>((core.value_or(0) + thread_id) % (kSlots / 2));
  LatestRow& latest = latest_[slot];
  if (latest.row == kNoRow || latest.key != key) latest = {key, FindNeuronRow(key)};
  return latest.row;
}

// Ids are texts in these files, so that they are hashed for the key. Names come from the file's
// metadata events.
uint32_t RowModel::FrameworkRow(const TimelineRecord& record) {
  const std::string process_id = FrameworkProcessId(record);
  const std::string thread_id = FrameworkThreadId(record);
  const Key key{.stream = record.stream,
                .process_id = HashEventType(process_id),
                .thread_id = HashEventType(thread_id),
                .source = RowSource::kFramework};
  if (const auto known = row_of_.find(key); known != row_of_.end()) return known->second;
  if (rows_.size() >= kRowsMax) return SharedRow(record.stream, RowSource::kFramework);
  const auto& names = header_->framework_names[record.stream].threads;
  const auto named = names.find({process_id, thread_id});
  ExportRow row{.process = FrameworkProcess(record.stream, process_id),
                .stream = record.stream,
                .source = RowSource::kFramework,
                .name = named == names.end() ? ThreadName(thread_id) : Trimmed(named->second),
                .thread_id = record.thread_id};
  row.name += "-framework";
  // Two threads with one name are two rows.
  return row_of_[key] = AddRow(std::move(row), fmt::format("{}", key.thread_id));
}

uint32_t RowModel::RowOf(const TimelineRecord& record) {
  const StreamKind kind = header_->streams[record.stream].description.identity.kind;
  if (kind == StreamKind::kFramework) return FrameworkRow(record);
  if (kind == StreamKind::kAnnotation) {
    return NeuronRow(record.stream, record.thread_id, RowSource::kAnnotation, std::nullopt);
  }
  const RowSource source = RowSourceOf(record.start().event_type, is_hardware_only_);
  return NeuronRow(record.stream, record.thread_id, source,
                   source == RowSource::kHardware ? CoreOf(record) : std::nullopt);
}

}  // namespace neurontrace
