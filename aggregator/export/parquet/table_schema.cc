// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/parquet/table_schema.h"

#include <array>

namespace neurontrace {
namespace {

// The elements of the arrays below are ColumnSpec in the order of its fields: name, type, required,
// description, unit, example, minimum, maximum, values. The order of the columns is that in which
// the writers give the values; TableWriter ends the export if a type differs. Names of columns
// without "nt_" and of tables without "Nt" are frozen by the vendor's schema.
using enum ColumnType;

// A time that is later in most rows than in the row before.
constexpr ColumnSpec RisingNs(std::string_view name, std::string_view description) {
  return {.name = name,
          .is_required = true,
          .description = description,
          .unit = "ns",
          .is_rising = true};
}

// The vendor's columns come first; ours follow with the prefix nt_. EventRowMaker::Write gives the
// values of kEventColumns.
constexpr ColumnSpec kEventColumns[] = {
    {.name = "id",
     .is_required = true,
     .description = "Number of the row, unique in the table",
     .is_rising = true},
    {"name", kText, true, "What the runtime or the framework calls the event", "", "nrt_execute"},
    {.name = "start_ts",
     .is_required = true,
     .description = "Start since the epoch, aligned between hosts where clocks are known",
     .unit = "ns",
     .example = "1766072156592459482",
     .is_rising = true},
    RisingNs("end_ts", "End; of an instant its start"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns", "", "0"},
    {"trace_event_source", kText, true, "Who saw it", "", "neuron_hw", "", "",
     "neuron_rt,neuron_hw,framework"},
    {"instance_id", kText, true, "Instance of the worker", "", "i-0f207fb2a99bd2d08"},
    {"process_id", kInt64, false,
     "Process; can recur in containers and instances. Null where a framework's is no number"},
    {"thread_id", kInt64, false, "Thread; null where a framework's is no number"},
    {"nc_idx", kInt64, false, "Logical core in its process's instance"},
    {"pcore_idx", kInt64, false, "Physical core in its device (device_core_idx)"},
    {"worker_gid", kInt64, false, "Core over all instances, where that is known"},
    {"flow_id", kTextList, false,
     "Events of one process with one of these in common belong together", "", "exec:17"},
    {"framework_stream_id", kText, false, "Stream that a framework ran it on"},
    {"extra_attributes_json", kText, false,
     "All other attributes, as an object; a stop's attribute that its start has too begins with "
     "stop_"},
    {"nt_event_id", kUint64, false, "The runtime's own id of the event"},
    {"nt_exec_id", kUint64, false, "Execution, unique on one core for a time"},
    {"nt_nrta_seq_id", kUint64, false, "Sequence id of an asynchronous request"},
    {"nt_category", kText, false, "Category of a framework's event"},
    {"nt_is_instant", kBool, true, "It has no length by its kind"},
    {"nt_is_open", kBool, true, "Its stop is not known: it ends where its stream ends"},
    {"nt_is_start_lost", kBool, true, "Its start is not known: start_ts is its stop"},
    {"nt_clock", kText, false, "Whose clock start_ts is of; null: nothing is known of clocks", "",
     "", "", "", "host,device,vendor,own"},
    {"nt_clock_bound_ns", kInt64, false, "start_ts is that near to the truth; null: not known",
     "ns"},
    {.name = "nt_raw_start_ts",
     .type = kUint64,
     .description = "The stamp as it was recorded, where start_ts is another",
     .unit = "ns",
     .is_rising = true},
    {"nt_container_id", kText, false, "Container of the process"},
    {"nt_process_name", kText, false, "What a framework calls the process"},
    {"nt_thread_name", kText, false, "What a framework calls the thread"},
};

// WriteCpuSample and WriteMemorySample (profile_tables.cc) give the values of these two.
constexpr ColumnSpec kCpuColumns[] = {
    RisingNs("timestamp", "Start of the interval"),
    {"util_percent", kFloat, true, "Share of the interval in which it was busy", "percent", "12.5",
     "0", "100"},
    {"cpu_id", kText, true, "Processor, or the average of all", "", "average"},
    {"instance_id", kText, true, "Instance"},
    {"ultraserver_id", kInt64, false, "Not recorded: null"},
    {"ultraserver_instance_index", kInt64, false, "Not recorded: null"},
    {"nt_duration_ns", kInt64, false, "Length of the interval", "ns"},
};

constexpr ColumnSpec kMemoryColumns[] = {
    RisingNs("timestamp", "When it was read"),
    {"used_bytes", kInt64, false, "Memory that could not be given to a program", "bytes"},
    {"used_percent", kFloat, false, "Of all memory", "percent", "50", "0", "100"},
    {"instance_id", kText, true, "Instance"},
    {"ultraserver_id", kInt64, false, "Not recorded: null"},
    {"ultraserver_instance_index", kInt64, false, "Not recorded: null"},
    {"nt_total_bytes", kInt64, false, "Memory of the host", "bytes"},
};

// One column for each HbmCategory, in the order of that enum: DerivedTables writes them in a loop.
constexpr ColumnSpec HbmBytes(std::string_view name) {
  return {name, kInt64, true, "In use for this", "bytes", "", "0"};
}

// DerivedTables::WriteMemory gives the values.
constexpr ColumnSpec kHbmColumns[] = {
    RisingNs("timestamp", "End of the allocation or release after which it was so"),
    {"total_bytes", kInt64, true, "In use, of all categories", "bytes", "", "0"},
    HbmBytes("generic_bytes"),
    HbmBytes("tensor_instructions_bytes"),
    HbmBytes("scalar_instructions_bytes"),
    HbmBytes("gpsimd_instructions_bytes"),
    HbmBytes("vector_instructions_bytes"),
    HbmBytes("sync_instructions_bytes"),
    HbmBytes("io_bytes"),
    HbmBytes("dram_spill_bytes"),
    HbmBytes("weights_bytes"),
    HbmBytes("profiler_buffers_bytes"),
    HbmBytes("scalar_table_bytes"),
    HbmBytes("shared_scratchpad_bytes"),
    HbmBytes("tensors_bytes"),
    HbmBytes("ucode_lib_bytes"),
    HbmBytes("gpsimd_stdio_bytes"),
    HbmBytes("collectives_bytes"),
    HbmBytes("scratchpad_bytes"),
    HbmBytes("dma_rings_runtime_bytes"),
    HbmBytes("dma_rings_spill_bytes"),
    HbmBytes("dma_rings_io_bytes"),
    HbmBytes("dma_rings_collectives_bytes"),
    HbmBytes("unknown_bytes"),
    {"device_idx", kInt64, true, "Device"},
    {"hbm_idx", kInt64, true, "Memory of the device"},
    {"instance_id", kText, true, "Instance"},
};

// The next functions of profile_tables.cc give the values: WriteMetadataTable,
// WriteDeviceProfileTable, and WriteWarningTable for kWarningColumns.
constexpr ColumnSpec kMetadataColumns[] = {
    {"first_ts", kText, true, "Start of the first event", "",
     "2025-12-18 15:35:56.592459482 +0000 UTC"},
    {"last_ts", kText, true, "End of the last event"},
    {"first_ts_ns", kText, true, "The same since the epoch", "ns", "1766072156592459482"},
    {"last_ts_ns", kText, true, "The same since the epoch", "ns"},
    {"ntff_version", kInt64, false, "Null: no NTFF was read"},
    {"hbm_capacity_bytes", kInt64, false, "Not recorded: null", "bytes"},
    {"nt_profile_schema_version", kText, true, "Version of the vendor's schema", "", "7.4.0"},
    {"nt_producer", kText, true, "What wrote the tables", "", "neurontrace 0.1.0"},
    {"nt_capture_id", kText, true, "Capture"},
    {"nt_capture_name", kText, true, "Its name"},
    {"nt_timescale", kText, true, "Whether times are aligned (reference) or not (recorded)", "", "",
     "", "", "reference,recorded"},
    {"nt_clocks_json", kText, true, "What is known of clocks, as in the JSON export"},
    {"nt_certificate_json", kText, false, "The capture's certificate, as an object"},
};

constexpr ColumnSpec kDeviceProfileColumns[] = {
    {"device_profile_name", kText, true, "Name of the device profile", "",
     "i-0f207fb2a99bd2d08_pid_7_nc_0_session_1"},
    {"instance_id", kText, true, "Instance"},
    {"process_id", kInt64, true, "Process, as its own pid namespace calls it"},
    {"nc_id", kInt64, true, "Core"},
    {"session_id", kInt64, false, "Session of the profiler; null: its name says none"},
    {"model_id", kInt64, false, "Not recorded: null"},
    {"nt_path", kText, true, "Where the NTFF stands among the capture's artifacts"},
};

constexpr ColumnSpec kWarningColumns[] = {
    {"message", kText, true, "What is missing, or to be known before figures are trusted"},
    {"category", kText, true, "Kind of the message", "", "Missing Data", "", "",
     "Capture,Missing Data"},
};

// ParquetExporter::WriteEdge gives the values.
constexpr ColumnSpec kFlowColumns[] = {
    {"in_id", kInt64, true, "Row that it goes from"},
    {"out_id", kInt64, true, "Row that it goes to"},
    {"in_table", kText, true, "Table of in_id", "", "SystemProfileEvents"},
    {"out_table", kText, true, "Table of out_id", "", "SystemProfileEvents"},
    {"dependency_type", kText, false, "What it is known by", "", "exec_id", "", "",
     "framework,framework_call,nrta_seq_id,exec_id"},
    {"gap_time", kInt64, false,
     "From the end of in_id, as it was known then, to the start of out_id; below 0 where they "
     "overlap",
     "ns"},
};

// WriteSchemaTable gives the values: the table describes every column, including its own.
constexpr ColumnSpec kSchemaColumns[] = {
    {"table_name", kText, true, "Table"},
    {"table_description", kText, true, "What a row of it is"},
    {"field_name", kText, true, "Column"},
    {"field_description", kText, true, "What it holds"},
    {"field_example", kText, false, "A value"},
    {"field_type", kText, true, "Type", "", "integer", "", "",
     "integer,number,boolean,string,array"},
    {"field_required", kBool, true, "It is never null"},
    {"field_format", kText, false, "Which number", "", "int64"},
    {"field_unit", kText, false, "Unit", "", "ns"},
    {"field_minimum", kText, false, "Smallest value"},
    {"field_maximum", kText, false, "Largest value"},
    {"field_enum_values", kText, false, "The values that there are, between commas"},
};

// From here on tables of our own, defined in docs/formats/derived.md and docs/formats/parquet.md.
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
    RisingNs("start_ts", "Start of the physical core that began first"),
    RisingNs("end_ts", "End of the physical core that ended last"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"busy_ns", kInt64, true, "In which at least one physical core ran", "ns"},
    {"prepared_ts", kInt64, false, "The runtime began to prepare it", "ns"},
    {"parts", kInt64, true, "Spans that it was joined from", "", "2"},
    {"is_open", kBool, true, "Its end is not known"},
    {"clock_bound_ns", kInt64, false, "start_ts is that near to the truth", "ns"},
};

// A row is what StepFinder found: a step that a framework marked, or an execution.
constexpr ColumnSpec kStepColumns[] = {
    {"instance_id", kText, true, "Instance"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core, of a step that is an execution"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"source", kText, true, "Whether the framework says so or each execution is one", "", "", "",
     "", "framework,execution"},
    {"number", kInt64, true, "Number of the step"},
    RisingNs("start_ts", "Start"),
    RisingNs("end_ts", "End"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"executions", kInt64, true, "Executions that began in it"},
    {"device_busy_ns", kInt64, true, "The sum of their busy time over cores", "ns"},
    {"exec_id", kUint64, false, "Of a step that is an execution"},
    {"model_name", kText, false, "Of a step that is an execution"},
    {"is_open", kBool, true, "Its end is not known"},
};

// A row is a collective that CollectiveFinder joined from its members.
constexpr ColumnSpec kCollectiveColumns[] = {
    {"collective", kInt64, true, "Number, unique in the table"},
    {"communicator", kInt64, true, "Number of the communicator"},
    {"communicator_group", kUint64, false, "The group (gid) that its events name"},
    {"cc_stream", kUint64, false, "The stream of collectives that its events name"},
    {"kind", kText, true, "What it is seen by", "", "", "", "", "device,host_barrier"},
    {"exec_id", kUint64, true, "Execution of its members"},
    {"op_id", kUint64, true, "Operation; of a barrier 0"},
    {"algorithm", kText, false, "Algorithm"},
    RisingNs("start_ts", "First arrival"),
    RisingNs("last_arrival_ts", "Last arrival"),
    RisingNs("end_ts", "Last end"),
    {"arrival_skew_ns", kInt64, true, "From the first arrival to the last", "ns"},
    {"skew_bound_ns", kInt64, false, "The skew is that near to the truth; null: not known", "ns"},
    {"members", kInt64, true, "Cores that are in it"},
    {"absent", kInt64, true, "Cores that should be in it and are not"},
    {"is_last_known", kBool, true, "The last member is known to be so, whatever the clocks"},
    {"is_disjoint", kBool, true, "Its members cannot have met: it is no collective"},
};

// Rows refer to kCollectiveColumns by number, so that both can be joined in SQL.
constexpr ColumnSpec kMemberColumns[] = {
    {"collective", kInt64, true, "NtCollectives.collective"},
    {"arrival", kInt64, true, "Place in the order of arrival", "", "0"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    RisingNs("start_ts", "It arrived"),
    RisingNs("end_ts", "It left"),
    {"is_open", kBool, true, "It is not known when it left"},
    {"clock_bound_ns", kInt64, false, "start_ts is that near to the truth", "ns"},
};

// Intervals have a fixed length; after the last with a transfer follows one of 0 bytes.
constexpr ColumnSpec kBandwidthColumns[] = {
    RisingNs("timestamp", "Start of the interval"),
    {"duration_ns", kInt64, true, "Length of the interval", "ns"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"direction", kText, true, "Direction", "", "", "", "", "host_to_device,device_to_host"},
    {"bytes", kDouble, true, "Moved in the interval", "bytes"},
    {"bytes_per_second", kDouble, true, "The same as a rate", "bytes/s"},
};

// A row for each boot of an instance, with or without a model.
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

// A row for each stream, place and reason with a loss.
constexpr ColumnSpec kLossColumns[] = {
    {"instance_id", kText, true, "Instance of the stream"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Core over all instances"},
    {"stream", kText, true, "The stream as text"},
    {"place", kText, true, "Where events were lost", "", "runtime ring"},
    {"reason", kText, true, "Why", "", "overwritten"},
    {"events", kInt64, true, "How many", "", "", "0"},
    {"is_unknown", kBool, true, "There are more, which could not be counted"},
    {"first_raw_ts", kInt64, false, "First time around them, as recorded", "ns"},
    {"last_raw_ts", kInt64, false, "Last time around them, as recorded", "ns"},
    {"detail", kText, false, "More about it"},
};

}  // namespace

// The name of a table is also that of its file; only the first has row groups of another size.
const TableSpec kSystemProfileEvents = {"SystemProfileEvents",
                                        "Events of the runtime, the hardware and frameworks",
                                        kEventColumns, size_t{12} << 20};
const TableSpec kCpuUsage = {"CpuUsage", "How busy a host's processors were", kCpuColumns};
const TableSpec kHostMemUsage = {"HostMemUsage", "Memory in use of a host", kMemoryColumns};
const TableSpec kSystemProfileHbmUsage = {
    "SystemProfileHbmUsage", "Memory in use of a device after each allocation and release",
    kHbmColumns};
const TableSpec kSystemProfileMetadata = {"SystemProfileMetadata", "The profile as a whole",
                                          kMetadataColumns};
const TableSpec kDeviceProfileList = {"DeviceProfileList",
                                      "Device profiles (NTFF) among the capture's artifacts",
                                      kDeviceProfileColumns};
const TableSpec kWarning = {"Warning", "What the profile lacks", kWarningColumns};
const TableSpec kFlow = {"Flow", "Which event led to which", kFlowColumns};
const TableSpec kSchemaFields = {"SchemaFields", "Every column of every table", kSchemaColumns};

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

// JSON Schema's names of types, as the vendor's SchemaFields has them.
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
