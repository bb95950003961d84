// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/derived_tables.h"

#include <algorithm>
#include <limits>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

// Returns a time as int64, the type of such columns in the vendor's tables and in ours. Values
// beyond int64 become its maximum, which SQL reads as a time in 2262.
std::optional<int64_t> Signed64(std::optional<uint64_t> value) {
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value) return std::nullopt;
  return static_cast<int64_t>(std::min(*value, kMax));
}

// Passes every item to `write` and clears the list. After an error the list is unchanged, which
// does no harm because the export ends.
template <typename Items, typename Write>
absl::Status WriteAll(Items& items, Write write) {
  for (const auto& item : items) RETURN_IF_ERROR(write(item));
  items.clear();
  return absl::OkStatus();
}

}  // namespace

DerivedTables::DerivedTables(std::span<const TimelineStream> streams, OutputFiles& files,
                             uint64_t file_bytes_max, uint64_t& bytes_written)
    : streams_(streams),
      execution_finder_(streams, fields_),
      step_finder_(streams, fields_),
      collective_finder_(streams, fields_),
      hbm_use_(streams, fields_),
      bandwidth_finder_(fields_),
      execution_table_(files, kNtExecutions, file_bytes_max, bytes_written),
      step_table_(files, kNtSteps, file_bytes_max, bytes_written),
      collective_table_(files, kNtCollectives, file_bytes_max, bytes_written),
      member_table_(files, kNtCollectiveMembers, file_bytes_max, bytes_written),
      memory_table_(files, kSystemProfileHbmUsage, file_bytes_max, bytes_written),
      bandwidth_table_(files, kNtBandwidth, file_bytes_max, bytes_written) {}

absl::Status DerivedTables::Take(const TimelineBatch& batch) {
  // Steps are derived from executions, so executions come first.
  execution_finder_.Take(batch, executions_);
  step_finder_.Take(batch, executions_, steps_);
  collective_finder_.Take(batch, collectives_);
  hbm_use_.Take(batch, memory_);
  bandwidth_finder_.Take(batch, bandwidth_);
  return WriteFound();
}

absl::Status DerivedTables::Finish() {
  execution_finder_.Finish(executions_);
  // The last executions may belong to steps: before these are finished.
  step_finder_.Take(TimelineBatch{}, executions_, steps_);
  step_finder_.Finish(steps_);
  collective_finder_.Finish(collectives_);
  hbm_use_.Finish(memory_);
  bandwidth_finder_.Finish(bandwidth_);
  RETURN_IF_ERROR(WriteFound());
  for (TableWriter* table : {&execution_table_, &step_table_, &collective_table_, &member_table_,
                             &memory_table_, &bandwidth_table_}) {
    RETURN_IF_ERROR(table->Finish());
  }
  return absl::OkStatus();
}

// After each batch: nothing derived is kept longer than necessary.
absl::Status DerivedTables::WriteFound() {
  RETURN_IF_ERROR(WriteAll(executions_, [this](const auto& item) { return WriteExecution(item); }));
  RETURN_IF_ERROR(WriteAll(steps_, [this](const auto& item) { return WriteStep(item); }));
  RETURN_IF_ERROR(
      WriteAll(collectives_, [this](const auto& item) { return WriteCollective(item); }));
  RETURN_IF_ERROR(WriteAll(memory_, [this](const auto& item) { return WriteMemory(item); }));
  return WriteAll(bandwidth_, [this](const auto& item) { return WriteBandwidth(item); });
}

// The columns follow each other in this order in every table that has them.
void DerivedTables::WriteStream(uint32_t stream, TableWriter& table) const {
  const StreamIdentity& identity = streams_[stream].description.identity;
  table.Text(identity.worker.instance_id).Int(identity.worker.pid);
  table.Int(identity.has_core() ? std::optional<int64_t>(identity.nc_idx) : std::nullopt);
  table.Int(streams_[stream].rank.worker_gid);
}

// The functions below give the values in the order of the columns in table_schema.cc; TableWriter
// checks their types and their number.
absl::Status DerivedTables::WriteExecution(const Execution& execution) {
  TableWriter& table = execution_table_;
  WriteStream(execution.stream, table);
  table.Text(execution.source == ExecutionSource::kDevice ? "device" : "runtime");
  table.Count(execution.number).Uint(execution.exec_id).Uint(execution.model_id);
  table.TextOrNull(execution.model_name).Count(execution.start_ns).Count(execution.end_ns);
  table.Count(execution.end_ns - execution.start_ns).Count(execution.busy_ns);
  table.Int(Signed64(execution.prepared_ns)).Int(execution.parts).Bool(execution.is_open);
  table.Int(Signed64(execution.bound.bound_ns));
  return table.EndRow();
}

absl::Status DerivedTables::WriteStep(const Step& step) {
  TableWriter& table = step_table_;
  WriteStream(step.stream, table);
  table.Text(step.source == StepSource::kFramework ? "framework" : "execution");
  table.Count(step.number).Count(step.start_ns).Count(step.end_ns);
  table.Count(step.end_ns - step.start_ns).Count(step.executions).Count(step.device_busy_ns);
  table.Uint(step.exec_id).TextOrNull(step.model_name).Bool(step.is_open);
  return table.EndRow();
}

absl::Status DerivedTables::WriteCollective(const Collective& collective) {
  TableWriter& table = collective_table_;
  const Communicator& communicator = collective_finder_.communicators()[collective.communicator];
  // A collective ends when its last member leaves.
  uint64_t end_ns = 0;
  for (const CollectiveMember& member : collective.members) {
    end_ns = std::max(end_ns, member.end_ns);
  }
  // The order of these calls is that of the columns in table_schema.cc; TableWriter checks the
  // types.
  table.Count(collective.number).Int(collective.communicator).Uint(communicator.group);
  table.Uint(communicator.cc_stream);
  table.Text(collective.kind == CollectiveKind::kDevice ? "device" : "host_barrier");
  table.Uint(collective.exec_id).Uint(collective.op_id).TextOrNull(collective.algorithm);
  table.Count(collective.start_ns()).Count(collective.last_arrival_ns()).Count(end_ns);
  table.Count(collective.arrival_skew_ns()).Int(Signed64(collective.skew_bound_ns()));
  table.Count(collective.members.size()).Count(collective.absent_count);
  table.Bool(collective.is_last_known()).Bool(collective.is_disjoint());
  RETURN_IF_ERROR(table.EndRow());
  // Members are in the order of their arrival.
  for (size_t i = 0; i < collective.members.size(); ++i) {
    const CollectiveMember& member = collective.members[i];
    member_table_.Count(collective.number).Count(i);
    WriteStream(member.stream, member_table_);
    member_table_.Count(member.start_ns).Count(member.end_ns).Bool(member.is_open);
    member_table_.Int(Signed64(member.bound.bound_ns));
    RETURN_IF_ERROR(member_table_.EndRow());
  }
  return absl::OkStatus();
}

absl::Status DerivedTables::WriteMemory(const HbmSample& sample) {
  TableWriter& table = memory_table_;
  const HbmIdentity& memory = hbm_use_.memories()[sample.hbm];
  table.Count(sample.time_ns).Count(sample.total_bytes);
  // The columns of the categories are in the order of HbmCategory.
  for (const uint64_t bytes : sample.category_bytes) table.Count(bytes);
  table.Count(memory.device).Count(memory.hbm).Text(memory.instance_id);
  return table.EndRow();
}

absl::Status DerivedTables::WriteBandwidth(const BandwidthSample& sample) {
  TableWriter& table = bandwidth_table_;
  const uint64_t bin_ns = bandwidth_finder_.bin_ns();
  table.Count(sample.start_ns).Count(bin_ns);
  WriteStream(sample.stream, table);
  table.Text(sample.direction == TransferDirection::kHostToDevice ? "host_to_device"
                                                                  : "device_to_host");
  table.Real(sample.bytes).Real(sample.BytesPerSecond(bin_ns));
  return table.EndRow();
}

}  // namespace neurontrace
