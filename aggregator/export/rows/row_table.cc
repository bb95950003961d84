// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/rows/row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "aggregator/export/pftrace/row_names.h"
#include "aggregator/export/row_source.h"
#include "aggregator/timeline/device_stamp.h"
#include "aggregator/timeline/framework_names.h"

namespace neurontrace {
namespace {

auto PlaceOf(const TimelineStream& stream) {
  const StreamIdentity& id = stream.description.identity;
  return std::tie(id.worker.instance_id, id.worker.pid, id.worker.start_time_ticks,
                  id.worker.container_id, id.kind, id.nc_idx, id.name);
}

// The physical core of a hardware event that says it.
std::optional<uint64_t> CoreOf(const TimelineRecord& record) {
  const auto key = DeviceCoreKey(record.start());
  if (!key) return std::nullopt;
  return record.values[*key];
}

}  // namespace

void RowTable::Begin(const TimelineHeader& header) {
  header_ = &header;
  std::vector<uint32_t> streams(header.streams.size());
  std::iota(streams.begin(), streams.end(), 0u);
  std::sort(streams.begin(), streams.end(), [&](uint32_t a, uint32_t b) {
    return PlaceOf(header.streams[a]) < PlaceOf(header.streams[b]);
  });
  order_.resize(streams.size());
  for (uint32_t i = 0; i < streams.size(); ++i) order_[streams[i]] = i;
}

uint32_t RowTable::AddProcess(const std::string& key, uint32_t stream, std::string label,
                              std::string labels) {
  const auto [known, is_new] = process_of_key_.try_emplace(key, processes_.size());
  if (!is_new) return known->second;
  if (label.empty()) label = "all";
  if (label_counts_[label]++ > 0) {
    label = DisambiguatedLabel(label, header_->streams[stream].description.identity.worker);
  }
  processes_.push_back({std::move(label), std::move(labels), stream});
  return known->second;
}

uint32_t RowTable::NeuronProcess(uint32_t stream, uint64_t thread_id) {
  const TimelineStream& about = header_->streams[stream];
  std::string label = grouping_.ProcessLabel(about, thread_id);
  std::string key = label;
  if (grouping_.primary_has(Grouping::Part::kProcessId)) {
    key += "\n" + WorkerKey(about.description.identity.worker);
  }
  return AddProcess(key, stream, std::move(label), {});
}

uint32_t RowTable::FrameworkProcess(uint32_t stream, const std::string& process_id) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  const auto& names = header_->framework_names[stream].processes;
  const auto named = names.find(process_id);
  std::string label = identity.worker.instance_id;
  if (!process_id.empty()) label += "-pid" + process_id;
  if (named != names.end() && !named->second.name.empty()) label += " " + named->second.name;
  label += fmt::format(" ({})", identity.name);
  if (header_->streams[stream].description.has_own_time()) label += kOwnTimeSuffix;
  const uint32_t process =
      AddProcess(fmt::format("framework\n{}\n{}", stream, process_id), stream, std::move(label),
                 named == names.end() ? std::string() : named->second.labels);
  first_processes_.try_emplace(stream, process);
  return process;
}

uint32_t RowTable::ProcessOf(uint32_t stream) {
  const StreamIdentity& identity = header_->streams[stream].description.identity;
  if (identity.kind == StreamKind::kHost) {
    return AddProcess("host\n" + WorkerKey(identity.worker), stream,
                      identity.worker.instance_id + " host", {});
  }
  if (identity.kind != StreamKind::kFramework) return NeuronProcess(stream, 0);
  if (const auto first = first_processes_.find(stream); first != first_processes_.end()) {
    return first->second;
  }
  const auto& named = header_->framework_names[stream].processes;
  return FrameworkProcess(stream, named.empty() ? std::string() : named.begin()->first);
}

uint32_t RowTable::ProcessOf(const TimelineRecord& record) {
  const StreamKind kind = header_->streams[record.stream].description.identity.kind;
  if (kind == StreamKind::kFramework) {
    return FrameworkProcess(record.stream, FrameworkProcessId(record));
  }
  return kind == StreamKind::kHost ? ProcessOf(record.stream)
                                   : NeuronProcess(record.stream, record.thread_id);
}

uint32_t RowTable::AddRow(ExportRow row, const std::string& key) {
  const auto [known, is_new] =
      row_of_name_.try_emplace(fmt::format("{}\n{}\n{}", row.process, key, row.name), rows_.size());
  if (is_new) rows_.push_back(std::move(row));
  return known->second;
}

uint32_t RowTable::SharedRow(uint32_t stream, RowSource source) {
  const Key key{.stream = stream, .source = source, .is_shared = true};
  if (const auto known = row_of_.find(key); known != row_of_.end()) return known->second;
  const bool is_hardware = source == RowSource::kHardware;
  ExportRow row{.process = ProcessOf(stream),
                .name = fmt::format("further rows-{}", ToString(source)),
                .order = 2 * order_[stream] + (is_hardware ? 1 : 0)};
  return row_of_[key] = AddRow(std::move(row), "shared");
}

uint32_t RowTable::NeuronRow(const TimelineRecord& record) {
  const RowSource source =
      RowSourceOf(record.start().event_type, header_->filter->event_types.selects_only_hardware());
  const std::optional<uint64_t> core =
      source == RowSource::kHardware ? CoreOf(record) : std::nullopt;
  const Key key{
      .stream = record.stream, .thread_id = record.thread_id, .core = core, .source = source};
  if (const auto known = row_of_.find(key); known != row_of_.end()) return known->second;
  if (rows_.size() >= kRowsMax) return SharedRow(record.stream, source);
  ExportRow row{.process = NeuronProcess(record.stream, record.thread_id),
                .name = grouping_.RowLabel(header_->streams[record.stream], record.thread_id),
                .order = 2 * order_[record.stream] + (source == RowSource::kHardware ? 1 : 0)};
  if (!row.name.empty()) row.name += '-';
  if (core) row.name += CoreRowName(*core) + "-";
  row.name += ToString(source);
  return row_of_[key] = AddRow(std::move(row), core ? fmt::format("{}", *core) : std::string());
}

uint32_t RowTable::FrameworkRow(const TimelineRecord& record) {
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
                .name = named == names.end() ? ThreadName(thread_id) : Trimmed(named->second),
                .order = 2 * order_[record.stream]};
  row.name += "-framework";
  // Two threads of one name are two rows.
  return row_of_[key] = AddRow(std::move(row), fmt::format("{}", key.thread_id));
}

uint32_t RowTable::RowOf(const TimelineRecord& record) {
  const StreamKind kind = header_->streams[record.stream].description.identity.kind;
  return kind == StreamKind::kFramework ? FrameworkRow(record) : NeuronRow(record);
}

}  // namespace neurontrace
