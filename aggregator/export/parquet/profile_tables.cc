// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/profile_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/export/capture_warnings.h"
#include "aggregator/export/clock_report.h"
#include "aggregator/export/parquet/table_writer.h"
#include "aggregator/export/side_reader.h"
#include "aggregator/insight/insight_report.h"
#include "aggregator/timeline/framework_names.h"
#include "lib/base/status.h"
#include "lib/trace/host_samples.h"
#include "lib/trace/loss.h"
#include "lib/trace/suspension.h"

namespace neurontrace {
namespace {

// A number of whatever type; nullopt: the sample has none of that name.
std::optional<double> SampleNumber(const TimelineRecord& record, std::string_view name) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, name, &key);
  if (value == nullptr) return std::nullopt;
  if (key->type == ValueType::kUint) return static_cast<double>(*value);
  if (key->type != ValueType::kDouble) return std::nullopt;
  const auto number = std::bit_cast<double>(*value);
  // A NaN in a column makes sums and averages of SQL useless.
  return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
}

// Returns the attribute as a whole number; nullopt if the sample has none that int64 can hold.
std::optional<int64_t> SampleCount(const TimelineRecord& record, std::string_view name) {
  const ShapeKey* key = nullptr;
  const uint64_t* value = FindAttribute(record, KeyScope::kData, name, &key);
  if (value == nullptr || key->type != ValueType::kUint || *value > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(*value);
}

// Writes a row of CpuUsage, or nothing if the sample lacks its processor or its percentage.
absl::Status WriteCpuSample(const StreamIdentity& stream, const TimelineRecord& record,
                            TableWriter& table) {
  const ShapeKey* key = nullptr;
  const uint64_t* cpu = FindAttribute(record, KeyScope::kData, kHostCpuIdKey, &key);
  const auto percent = SampleNumber(record, kHostUtilPercentKey);
  if (cpu == nullptr || !percent) return absl::OkStatus();
  table.Count(record.start_ns).Real(percent);
  table.Text(AttributeText(*key, *cpu, record.names->strings)).Text(stream.worker.instance_id);
  // The two nulls are columns about UltraServers, which nothing here records.
  table.Null().Null().Int(SampleCount(record, kHostDurationNsKey));
  return table.EndRow();
}

// Writes a row of HostMemUsage; one of the two figures is enough.
absl::Status WriteMemorySample(const StreamIdentity& stream, const TimelineRecord& record,
                               TableWriter& table) {
  const auto bytes = SampleCount(record, kHostUsedBytesKey);
  const auto percent = SampleNumber(record, kHostUsedPercentKey);
  if (!bytes && !percent) return absl::OkStatus();
  table.Count(record.start_ns).Int(bytes).Real(percent).Text(stream.worker.instance_id);
  table.Null().Null().Int(SampleCount(record, kHostTotalBytesKey));
  return table.EndRow();
}

// A loss without a time has 0, which must not appear as 1970.
std::optional<int64_t> KnownTime(uint64_t time_ns) {
  if (time_ns == 0 || time_ns > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(time_ns);
}

// A figure that a verdict does not have is 0; an infinite one would make averages of SQL useless.
std::optional<double> KnownFigure(double value) {
  return std::isfinite(value) && value > 0 ? std::optional<double>(value) : std::nullopt;
}

// 0: not known.
std::optional<uint64_t> KnownId(uint64_t id) {
  return id == 0 ? std::nullopt : std::optional<uint64_t>(id);
}

// Writes worker_gids, suspects, cores and instance_id of a row of NtVerdicts.
void WriteCores(const TimelineHeader& header, const std::vector<uint32_t>& streams,
                TableWriter& table) {
  // A refusal can have all cores of a fleet.
  constexpr size_t kNamedMax = 1'024;
  std::vector<int64_t> gids;
  std::vector<std::string> names;
  std::set<std::string_view> instances;
  for (const uint32_t stream : streams) {
    const TimelineStream& about = header.streams[stream];
    instances.insert(about.description.identity.worker.instance_id);
    if (names.size() == kNamedMax) continue;
    names.push_back(ToString(about.description.identity));
    if (about.rank.worker_gid) gids.push_back(*about.rank.worker_gid);
  }
  table.Ints(gids).Texts(names).Count(streams.size());
  table.TextOrNull(instances.size() == 1 ? *instances.begin() : std::string_view());
}

// The functions below give the values in the order of the columns in table_schema.cc.
absl::Status WriteVerdict(const TimelineHeader& header, const Verdict& verdict,
                          const InsightLine& line, TableWriter& table) {
  table.Text(header.capture->id.ToString()).Bool(false).Text(VerdictKindName(verdict.kind)).Null();
  WriteCores(header, line.streams, table);
  table.Text(InsightPhaseName(verdict.phase)).TextOrNull(verdict.role).Int(verdict.peers);
  table.Real(KnownFigure(verdict.ratio)).Real(KnownFigure(verdict.z)).Int(verdict.executions);
  table.Int(verdict.judged).Int(KnownTime(verdict.since_ns)).Int(KnownTime(verdict.until_ns));
  table.Count(verdict.cost_ns).Count(verdict.step_ns).Count(verdict.total_cost_ns);
  table.Int(verdict.waiting);
  table.Uint(KnownId(verdict.exec_id)).Uint(KnownId(verdict.op_id)).Text(line.text);
  return table.TextOrNull(line.ruled_out).Null().EndRow();
}

absl::Status WriteRefusal(const TimelineHeader& header, const Refusal& refusal,
                          const InsightLine& line, TableWriter& table) {
  table.Text(header.capture->id.ToString()).Bool(true).Null();
  table.Text(RefusalReasonName(refusal.reason));
  WriteCores(header, line.streams, table);
  table.Null().Null().Int(0).Null().Null().Count(refusal.count).Int(0);
  table.Int(KnownTime(refusal.begin_ns)).Int(KnownTime(refusal.end_ns));
  table.Int(0).Int(0).Int(0).Int(0).Null().Null().Text(line.text).Null();
  return table.TextOrNull(refusal.missing).EndRow();
}

}  // namespace

absl::Status WriteHostTables(const TimelineHeader& header, const TableTarget& target,
                             ExportSummary& summary) {
  // Each table is a reading of its own, because only one file is written at a time.
  const auto write = [&](const TableSpec& about, std::string_view type,
                         auto write_sample) -> absl::Status {
    TableWriter table(target.files, about, target.file_bytes_max, target.bytes_written);
    RETURN_IF_ERROR(header.side_reader->ReadHostSamples(
        type,
        [&](const StreamIdentity& stream, const TimelineRecord& record) {
          return write_sample(stream, record, table);
        },
        summary));
    return table.Finish();
  };
  RETURN_IF_ERROR(write(kCpuUsage, kHostCpuEventType, WriteCpuSample));
  return write(kHostMemUsage, kHostMemoryEventType, WriteMemorySample);
}

absl::Status WriteDeviceProfileTable(const TimelineHeader& header, const TableTarget& target) {
  TableWriter table(target.files, kDeviceProfileList, target.file_bytes_max, target.bytes_written);
  for (const DeviceProfile& profile : header.device_profiles) {
    table.Text(profile.name).Text(profile.instance_id).Int(profile.process_id);
    table.Int(profile.nc_id);
    profile.session_id ? table.Count(*profile.session_id) : table.Null();
    RETURN_IF_ERROR(table.Null().Text(profile.path).EndRow());
  }
  return table.Finish();
}

absl::Status WriteMetadataTable(const TimelineHeader& header, uint64_t first_ns, uint64_t last_ns,
                                std::string_view judged, const TableTarget& target) {
  TableWriter table(target.files, kSystemProfileMetadata, target.file_bytes_max,
                    target.bytes_written);
  const ClockReport clocks = ClockReport::Of(header.clocks, header.raw_clocks, header.streams);
  table.Text(VendorTimeText(first_ns)).Text(VendorTimeText(last_ns));
  table.Text(fmt::format("{}", first_ns)).Text(fmt::format("{}", last_ns)).Null().Null();
  table.Text(kProfileSchemaVersion).Text(fmt::format("neurontrace {}", NEURONTRACE_VERSION));
  table.Text(header.capture->id.ToString()).Text(header.capture->name).Text(clocks.timescale());
  table.Text(clocks.Json()).TextOrNull(header.certificate_json).Text(judged);
  RETURN_IF_ERROR(table.EndRow());
  return table.Finish();
}

absl::Status WriteWarningTable(const TimelineHeader& header,
                               const std::vector<std::string>& warnings,
                               const TableTarget& target) {
  TableWriter table(target.files, kWarning, target.file_bytes_max, target.bytes_written);
  absl::Status status;
  // ForEachWarning has no way to stop, so that rows after an error are not added.
  ForEachWarning(header, warnings, [&](std::string_view message, std::string_view category) {
    if (status.ok()) status = table.Text(message).Text(category).EndRow();
  });
  RETURN_IF_ERROR(status);
  return table.Finish();
}

absl::Status WriteLossTable(const TimelineHeader& header, const TableTarget& target) {
  TableWriter table(target.files, kNtLosses, target.file_bytes_max, target.bytes_written);
  // A stream's `losses` are sums by place and reason, and its gaps are not listed here.
  for (const TimelineStream& stream : header.streams) {
    const StreamIdentity& identity = stream.description.identity;
    std::vector<Loss> sums = stream.description.losses;
    // All suspensions of a stream are one row, as a sum of losses is.
    for (const Suspension& suspension : stream.description.suspensions) {
      AddLoss(ShownAmongLosses(suspension), sums);
    }
    for (const Loss& loss : sums) {
      table.Text(identity.worker.instance_id).Int(identity.worker.pid);
      table.Int(identity.has_core() ? std::optional<int64_t>(identity.nc_idx) : std::nullopt);
      table.Int(stream.rank.worker_gid).Text(ToString(identity)).Text(ToString(loss.place));
      table.Text(ToString(loss.reason)).Count(loss.events).Bool(loss.events_unknown);
      table.Int(KnownTime(loss.first_timestamp_ns)).Int(KnownTime(loss.last_timestamp_ns));
      RETURN_IF_ERROR(table.TextOrNull(loss.detail).EndRow());
    }
  }
  return table.Finish();
}

absl::Status WriteClockTable(const TimelineHeader& header, const TableTarget& target) {
  TableWriter table(target.files, kNtClocks, target.file_bytes_max, target.bytes_written);
  // By instance and boot, so that rows are in a fixed order.
  std::map<std::pair<std::string_view, std::string_view>, const WorkerIdentity*> hosts;
  for (const TimelineStream& stream : header.streams) {
    const WorkerIdentity& worker = stream.description.identity.worker;
    // A reboot starts another clock: two rows.
    hosts.try_emplace({worker.instance_id, worker.boot_id}, &worker);
  }
  for (const auto& [name, worker] : hosts) {
    const InstanceClock* clock = header.clocks == nullptr ? nullptr : header.clocks->Find(*worker);
    table.Text(worker->instance_id).Bool(clock != nullptr);
    if (clock == nullptr) {
      // Without a model every column about it is null.
      table.Null().Null().Null().Null().Null().Null();
    } else {
      const bool has_bound = clock->bound_ns != kNoBound;
      table.Int(clock->offset_ns).Int(clock->drift_ppb);
      if (has_bound) {
        table.Count(clock->bound_ns).Count(clock->likely_bound_ns);
      } else {
        table.Null().Null();
      }
      table.Count(clock->exchanges);
      table.Text(fmt::format("{}", fmt::join(clock->sources, ",")));
    }
    RETURN_IF_ERROR(table.EndRow());
  }
  return table.Finish();
}

absl::Status WriteVerdictTable(const TimelineHeader& header, const CaptureAnswer& answer,
                               const TableTarget& target) {
  TableWriter table(target.files, kNtVerdicts, target.file_bytes_max, target.bytes_written);
  for (size_t i = 0; i < answer.verdicts.size(); ++i) {
    RETURN_IF_ERROR(WriteVerdict(header, answer.report.verdicts[i], answer.verdicts[i], table));
  }
  for (size_t i = 0; i < answer.refusals.size(); ++i) {
    RETURN_IF_ERROR(WriteRefusal(header, answer.report.refusals[i], answer.refusals[i], table));
  }
  return table.Finish();
}

absl::Status WriteSchemaTable(const TableTarget& target) {
  TableWriter table(target.files, kSchemaFields, target.file_bytes_max, target.bytes_written);
  // Also describes tables that this export did not write.
  for (const TableSpec* about : AllTables()) {
    for (const ColumnSpec& column : about->columns) {
      table.Text(about->name).Text(about->description).Text(column.name).Text(column.description);
      table.TextOrNull(column.example).Text(TypeName(column.type)).Bool(column.is_required);
      table.TextOrNull(FormatName(column.type)).TextOrNull(column.unit);
      table.TextOrNull(column.minimum).TextOrNull(column.maximum).TextOrNull(column.enum_values);
      RETURN_IF_ERROR(table.EndRow());
    }
  }
  return table.Finish();
}

}  // namespace neurontrace
