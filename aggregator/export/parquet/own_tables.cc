// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "aggregator/export/parquet/table_schema.h"

namespace neurontrace {
namespace {

using enum ColumnType;

constexpr ColumnSpec kExecutionColumns[] = {
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"source", kText, true, "What it is seen by: the device ran, or the host's call", "", "", "",
     "", "device,runtime"},
    {"number", kInt64, true, "Of its source on this core, in the order of starts", "", "0"},
    {"exec_id", kUint64, false, "The runtime's id"},
    {"model_id", kUint64, false, "The runtime's id of the model"},
    {"model_name", kText, false, "Name of the model"},
    {.name = "start_ts",
     .is_required = true,
     .description = "Start of the physical core that began first",
     .unit = "ns",
     .is_rising = true},
    {.name = "end_ts",
     .is_required = true,
     .description = "End of the one that ended last",
     .unit = "ns",
     .is_rising = true},
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"busy_ns", kInt64, true, "In which at least one physical core ran", "ns"},
    {"prepared_ts", kInt64, false, "The runtime began to prepare it", "ns"},
    {"parts", kInt64, true, "Spans that it was joined from", "", "2"},
    {"is_open", kBool, true, "Its end is not known"},
    {"clock_bound_ns", kInt64, false, "start_ts is that near to the truth", "ns"},
};

constexpr ColumnSpec kStepColumns[] = {
    {"instance_id", kText, true, "Instance"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core, of a step that is an execution"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"source", kText, true, "Whether the framework says so or each execution is one", "", "", "",
     "", "framework,execution"},
    {"number", kInt64, true, "Number of the step"},
    {.name = "start_ts",
     .is_required = true,
     .description = "Start",
     .unit = "ns",
     .is_rising = true},
    {.name = "end_ts", .is_required = true, .description = "End", .unit = "ns", .is_rising = true},
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"executions", kInt64, true, "Executions that began in it"},
    {"device_busy_ns", kInt64, true, "The sum of their busy time over cores", "ns"},
    {"exec_id", kUint64, false, "Of a step that is an execution"},
    {"model_name", kText, false, "Of a step that is an execution"},
    {"is_open", kBool, true, "Its end is not known"},
};

constexpr ColumnSpec kCollectiveColumns[] = {
    {"collective", kInt64, true, "Number, unique in the table"},
    {"communicator", kInt64, true, "Number of the communicator"},
    {"communicator_group", kUint64, false, "The group (gid) that its events name"},
    {"cc_stream", kUint64, false, "The stream of collectives that its events name"},
    {"kind", kText, true, "What it is seen by", "", "", "", "", "device,host_barrier"},
    {"exec_id", kUint64, true, "Execution of its members"},
    {"op_id", kUint64, true, "Operation; of a barrier 0"},
    {"algorithm", kText, false, "Algorithm"},
    {.name = "start_ts",
     .is_required = true,
     .description = "First arrival",
     .unit = "ns",
     .is_rising = true},
    {.name = "last_arrival_ts",
     .is_required = true,
     .description = "Last arrival",
     .unit = "ns",
     .is_rising = true},
    {.name = "end_ts",
     .is_required = true,
     .description = "Last end",
     .unit = "ns",
     .is_rising = true},
    {"arrival_skew_ns", kInt64, true, "From the first arrival to the last", "ns"},
    {"skew_bound_ns", kInt64, false, "The skew is that near to the truth; null: not known", "ns"},
    {"members", kInt64, true, "Cores that are in it"},
    {"absent", kInt64, true, "Cores that should be in it and are not"},
    {"is_last_known", kBool, true, "The last member is known to be so, whatever the clocks"},
    {"is_disjoint", kBool, true, "Its members cannot have met: it is no collective"},
};

constexpr ColumnSpec kMemberColumns[] = {
    {"collective", kInt64, true, "NtCollectives.collective"},
    {"arrival", kInt64, true, "Place in the order of arrival", "", "0"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {.name = "start_ts",
     .is_required = true,
     .description = "It arrived",
     .unit = "ns",
     .is_rising = true},
    {.name = "end_ts",
     .is_required = true,
     .description = "It left",
     .unit = "ns",
     .is_rising = true},
    {"is_open", kBool, true, "It is not known when it left"},
    {"clock_bound_ns", kInt64, false, "start_ts is that near to the truth", "ns"},
};

constexpr ColumnSpec kBandwidthColumns[] = {
    {.name = "timestamp",
     .is_required = true,
     .description = "Start of the interval",
     .unit = "ns",
     .is_rising = true},
    {"duration_ns", kInt64, true, "Length of the interval", "ns"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"direction", kText, true, "Direction", "", "", "", "", "host_to_device,device_to_host"},
    {"bytes", kDouble, true, "Moved in the interval", "bytes"},
    {"bytes_per_second", kDouble, true, "The same as a rate", "bytes/s"},
};

constexpr ColumnSpec kClockColumns[] = {
    {"instance_id", kText, true, "Instance"},
    {"is_known", kBool, true, "There is a model of its clock"},
    {"offset_ns", kInt64, false, "How far the reference is ahead of it at the capture's end", "ns"},
    {"drift_ppb", kInt64, false, "How much further ahead it gets in every second", "ns/s"},
    {"bound_ns", kInt64, false, "Its aligned times are that near to the truth; null: not known",
     "ns"},
    {"likely_bound_ns", kInt64, false, "And most likely that near", "ns"},
    {"exchanges", kInt64, false, "Probes that were answered"},
    {"sources", kText, false, "Evidence that there is, between commas", "", "udp,phc"},
};

constexpr ColumnSpec kLossColumns[] = {
    {"instance_id", kText, true, "Instance of the stream"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"stream", kText, true, "The stream in words"},
    {"place", kText, true, "Where events were lost", "", "runtime ring"},
    {"reason", kText, true, "Why", "", "overwritten"},
    {"events", kInt64, true, "How many", "", "", "0"},
    {"is_unknown", kBool, true, "There are more, which could not be counted"},
    {"first_raw_ts", kInt64, false, "First time around them, as recorded", "ns"},
    {"last_raw_ts", kInt64, false, "Last time around them, as recorded", "ns"},
    {"detail", kText, false, "More about it"},
};

}  // namespace

const TableSpec kNtExecutions = {"NtExecutions", "Executions of models on logical cores",
                                 kExecutionColumns};
const TableSpec kNtSteps = {"NtSteps", "Steps of workers or cores", kStepColumns};
const TableSpec kNtCollectives = {"NtCollectives", "Collective operations of several cores",
                                  kCollectiveColumns};
const TableSpec kNtCollectiveMembers = {"NtCollectiveMembers", "One core's part in a collective",
                                        kMemberColumns};
const TableSpec kNtBandwidth = {"NtBandwidth", "What a core moved in one interval",
                                kBandwidthColumns};
const TableSpec kNtClocks = {"NtClocks", "What is known of an instance's clock", kClockColumns};
const TableSpec kNtLosses = {"NtLosses", "Events that are known not to be there", kLossColumns};

std::span<const TableSpec* const> AllTables() {
  static constexpr std::array<const TableSpec*, 16> kTables = {
      &kSystemProfileEvents,   &kCpuUsage,          &kHostMemUsage, &kSystemProfileHbmUsage,
      &kSystemProfileMetadata, &kDeviceProfileList, &kWarning,      &kFlow,
      &kSchemaFields,          &kNtExecutions,      &kNtSteps,      &kNtCollectives,
      &kNtCollectiveMembers,   &kNtBandwidth,       &kNtClocks,     &kNtLosses};
  return kTables;
}

std::string_view TypeName(ColumnType type) {
  switch (type) {
    case kInt64:
    case kUint64:
      return "integer";
    case kFloat:
    case kDouble:
      return "number";
    case kBool:
      return "boolean";
    case kTextList:
      return "array";
    case kText:
      break;
  }
  return "string";
}

std::string_view FormatName(ColumnType type) {
  switch (type) {
    case kInt64:
      return "int64";
    case kUint64:
      return "uint64";
    case kFloat:
      return "float";
    case kDouble:
      return "double";
    default:
      return {};
  }
}

}  // namespace neurontrace
