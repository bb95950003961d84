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
     .description = "Row number, unique in the table",
     .is_rising = true},
    {"name", kText, true, "Name that the runtime or framework gives the event", "", "nrt_execute"},
    {.name = "start_ts",
     .is_required = true,
     .description = "Start since the epoch, aligned between hosts whose clocks are known",
     .unit = "ns",
     .example = "1766072156592459482",
     .is_rising = true},
    RisingNs("end_ts", "End; equal to the start for an instant"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns", "", "0"},
    {"trace_event_source", kText, true, "What recorded the event", "", "neuron_hw", "", "",
     "neuron_rt,neuron_hw,framework,annotation"},
    {"instance_id", kText, true, "Instance of the worker", "", "i-0f207fb2a99bd2d08"},
    {"process_id", kInt64, false,
     "Process id; other containers and instances may use the same. Null if a framework's id is not "
     "a number"},
    {"thread_id", kInt64, false, "Thread id; null if a framework's id is not a number"},
    {"nc_idx", kInt64, false, "Logical core of the process"},
    {"pcore_idx", kInt64, false, "Physical core of the device (device_core_idx)"},
    {"worker_gid", kInt64, false, "Global rank of the core, if known"},
    {"flow_id", kTextList, false,
     "Chains that the event belongs to; events of one process with a common entry belong together",
     "", "exec:17"},
    {"framework_stream_id", kText, false, "Stream on which a framework ran the event"},
    {"extra_attributes_json", kText, false,
     "All other attributes as a JSON object; the prefix stop_ marks a stop's attribute if its "
     "start has the same key"},
    {"nt_event_id", kUint64, false, "The runtime's id of the event"},
    {"nt_exec_id", kUint64, false, "Execution id, which a core may use again later"},
    {"nt_nrta_seq_id", kUint64, false, "Sequence id of an asynchronous request"},
    {"nt_category", kText, false, "Category of a framework's event or an annotation"},
    {"nt_is_instant", kBool, true, "The event is an instant and has no duration"},
    {"nt_is_open", kBool, true, "The stop is unknown; end_ts is the end of the stream"},
    {"nt_is_start_lost", kBool, true, "The start is unknown; start_ts is the time of the stop"},
    {"nt_clock", kText, false, "Clock that start_ts comes from; null if no clock is known", "", "",
     "", "", "host,device,vendor,own"},
    {"nt_clock_bound_ns", kInt64, false, "Largest error of start_ts; null if unknown", "ns"},
    {.name = "nt_raw_start_ts",
     .type = kUint64,
     .description = "Raw timestamp of the start, if it differs from start_ts",
     .unit = "ns",
     .is_rising = true},
    {"nt_container_id", kText, false, "Container of the process"},
    {"nt_process_name", kText, false, "A framework's name for the process"},
    {"nt_thread_name", kText, false, "A framework's name for the thread"},
};

// WriteCpuSample and WriteMemorySample (profile_tables.cc) give the values of these two.
constexpr ColumnSpec kCpuColumns[] = {
    RisingNs("timestamp", "Start of the interval"),
    {"util_percent", kFloat, true, "Share of the interval during which the processor was busy",
     "percent", "12.5", "0", "100"},
    {"cpu_id", kText, true, "Number of the processor, or average for all of them", "", "average"},
    {"instance_id", kText, true, "Instance"},
    {"ultraserver_id", kInt64, false, "Not recorded, always null"},
    {"ultraserver_instance_index", kInt64, false, "Not recorded, always null"},
    {"nt_duration_ns", kInt64, false, "Length of the interval", "ns"},
};

constexpr ColumnSpec kMemoryColumns[] = {
    RisingNs("timestamp", "Time of the sample"),
    {"used_bytes", kInt64, false, "Memory in use: total minus available", "bytes"},
    {"used_percent", kFloat, false, "Memory in use as a share of the total", "percent", "50", "0",
     "100"},
    {"instance_id", kText, true, "Instance"},
    {"ultraserver_id", kInt64, false, "Not recorded, always null"},
    {"ultraserver_instance_index", kInt64, false, "Not recorded, always null"},
    {"nt_total_bytes", kInt64, false, "Memory of the host", "bytes"},
};

// One column for each HbmCategory, in the order of that enum: DerivedTables writes them in a loop.
constexpr ColumnSpec HbmBytes(std::string_view name) {
  return {name, kInt64, true, "In use by this category", "bytes", "", "0"};
}

// DerivedTables::WriteMemory gives the values.
constexpr ColumnSpec kHbmColumns[] = {
    RisingNs("timestamp", "End of the allocation or release that changed the usage"),
    {"total_bytes", kInt64, true, "In use by all categories", "bytes", "", "0"},
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
    {"device_idx", kInt64, true, "Index of the device"},
    {"hbm_idx", kInt64, true, "Index of the memory in the device"},
    {"instance_id", kText, true, "Instance"},
};

// The next functions of profile_tables.cc give the values: WriteMetadataTable,
// WriteDeviceProfileTable, and WriteWarningTable for kWarningColumns.
constexpr ColumnSpec kMetadataColumns[] = {
    {"first_ts", kText, true, "Start of the first event", "",
     "2025-12-18 15:35:56.592459482 +0000 UTC"},
    {"last_ts", kText, true, "End of the last event"},
    {"first_ts_ns", kText, true, "first_ts since the epoch", "ns", "1766072156592459482"},
    {"last_ts_ns", kText, true, "last_ts since the epoch", "ns"},
    {"ntff_version", kInt64, false, "Always null, because no NTFF is read"},
    {"hbm_capacity_bytes", kInt64, false, "Not recorded, always null", "bytes"},
    {"nt_profile_schema_version", kText, true, "Version of the vendor's schema", "", "7.4.0"},
    {"nt_producer", kText, true, "Program that wrote the tables", "", "neurontrace 0.1.0"},
    {"nt_capture_id", kText, true, "Id of the capture"},
    {"nt_capture_name", kText, true, "Name of the capture"},
    {"nt_timescale", kText, true, "Whether times are aligned (reference) or not (recorded)", "", "",
     "", "", "reference,recorded"},
    {"nt_clocks_json", kText, true, "State of the clocks, in the form of the JSON export"},
    {"nt_certificate_json", kText, false, "The capture's certificate as a JSON object"},
    {"nt_judged", kText, true, "How much was judged for NtVerdicts, or why nothing was"},
};

constexpr ColumnSpec kDeviceProfileColumns[] = {
    {"device_profile_name", kText, true, "Name of the device profile", "",
     "i-0f207fb2a99bd2d08_pid_7_nc_0_session_1"},
    {"instance_id", kText, true, "Instance"},
    {"process_id", kInt64, true, "Process id in its own pid namespace"},
    {"nc_id", kInt64, true, "Core"},
    {"session_id", kInt64, false, "Session of the profiler; null if the name does not contain it"},
    {"model_id", kInt64, false, "Not recorded, always null"},
    {"nt_path", kText, true, "Path of the NTFF among the capture's artifacts"},
};

constexpr ColumnSpec kWarningColumns[] = {
    {"message", kText, true, "What is missing, or limits how far the figures can be trusted"},
    {"category", kText, true, "Category of the warning", "", "Missing Data", "", "",
     "Capture,Missing Data"},
};

// ParquetExporter::WriteEdge gives the values.
constexpr ColumnSpec kFlowColumns[] = {
    {"in_id", kInt64, true, "Row at which the relation starts"},
    {"out_id", kInt64, true, "Row at which the relation ends"},
    {"in_table", kText, true, "Table of in_id", "", "SystemProfileEvents"},
    {"out_table", kText, true, "Table of out_id", "", "SystemProfileEvents"},
    {"dependency_type", kText, false, "What relates the two events", "", "exec_id", "", "",
     "framework,framework_call,nrta_seq_id,exec_id"},
    {"gap_time", kInt64, false,
     "From the end of in_id, as known when out_id was read, to the start of out_id; negative if "
     "they overlap",
     "ns"},
};

// WriteSchemaTable gives the values: the table describes every column, including its own.
constexpr ColumnSpec kSchemaColumns[] = {
    {"table_name", kText, true, "Name of the table"},
    {"table_description", kText, true, "Description of its rows"},
    {"field_name", kText, true, "Name of the column"},
    {"field_description", kText, true, "Description of its values"},
    {"field_example", kText, false, "Example of a value"},
    {"field_type", kText, true, "Type of its values", "", "integer", "", "",
     "integer,number,boolean,string,array"},
    {"field_required", kBool, true, "The column is never null"},
    {"field_format", kText, false, "Type of its numbers", "", "int64"},
    {"field_unit", kText, false, "Unit", "", "ns"},
    {"field_minimum", kText, false, "Smallest value"},
    {"field_maximum", kText, false, "Largest value"},
    {"field_enum_values", kText, false, "All possible values, separated by commas"},
};

// From here on tables of our own, defined in docs/formats/derived.md and docs/formats/parquet.md.
constexpr ColumnSpec kExecutionColumns[] = {
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Global rank of the core"},
    {"source", kText, true, "Whether the device's events or the host's call show the execution", "",
     "", "", "", "device,runtime"},
    {"number", kInt64, true, "Number of the execution among those of its core and source, by start",
     "", "0"},
    {"exec_id", kUint64, false, "The runtime's id of the execution"},
    {"model_id", kUint64, false, "The runtime's id of the model"},
    {"model_name", kText, false, "Name of the model"},
    RisingNs("start_ts", "Start on the physical core that began first"),
    RisingNs("end_ts", "End on the physical core that ended last"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"busy_ns", kInt64, true, "Time during which at least one physical core ran", "ns"},
    {"prepared_ts", kInt64, false, "Time at which the runtime began to prepare the execution",
     "ns"},
    {"parts", kInt64, true, "Number of spans that form the execution", "", "2"},
    {"is_open", kBool, true, "The end is unknown"},
    {"clock_bound_ns", kInt64, false, "Largest error of start_ts; null if unknown", "ns"},
};

// A row is what StepFinder found: a step that a framework marked, or an execution.
constexpr ColumnSpec kStepColumns[] = {
    {"instance_id", kText, true, "Instance"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core, if the step is an execution"},
    {"worker_gid", kInt64, false, "Global rank of the core"},
    {"source", kText, true, "Whether a framework marked the step, or the step is one execution", "",
     "", "", "", "framework,execution"},
    {"number", kInt64, true, "Number of the step"},
    RisingNs("start_ts", "Start"),
    RisingNs("end_ts", "End"),
    {"duration_ns", kInt64, true, "end_ts - start_ts", "ns"},
    {"executions", kInt64, true, "Number of executions that began in the step"},
    {"device_busy_ns", kInt64, true, "Busy time of these executions, summed over all cores", "ns"},
    {"exec_id", kUint64, false, "Execution id, if the step is an execution"},
    {"model_name", kText, false, "Name of the model, if the step is an execution"},
    {"is_open", kBool, true, "The end is unknown"},
};

// A row is a collective that CollectiveFinder joined from its members.
constexpr ColumnSpec kCollectiveColumns[] = {
    {"collective", kInt64, true, "Number, unique in the table"},
    {"communicator", kInt64, true, "Number of the communicator"},
    {"communicator_group", kUint64, false, "Group (gid) in the events of its members"},
    {"cc_stream", kUint64, false, "Stream of collectives in the events of its members"},
    {"kind", kText, true, "Which events show the collective", "", "", "", "",
     "device,host_barrier"},
    {"exec_id", kUint64, true, "Execution id of its members"},
    {"op_id", kUint64, true, "Operation id; 0 for a barrier"},
    {"algorithm", kText, false, "Algorithm"},
    RisingNs("start_ts", "First arrival"),
    RisingNs("last_arrival_ts", "Last arrival"),
    RisingNs("end_ts", "Last end"),
    {"arrival_skew_ns", kInt64, true, "Time from the first arrival to the last", "ns"},
    {"skew_bound_ns", kInt64, false, "Largest error of the skew; null if unknown", "ns"},
    {"members", kInt64, true, "Number of cores that took part"},
    {"absent", kInt64, true, "Number of cores that should have taken part and did not"},
    {"is_last_known", kBool, true,
     "It is certain which member arrived last, given the clocks' bounds"},
    {"is_disjoint", kBool, true, "The members cannot have met, so this is not one collective"},
};

// Rows refer to kCollectiveColumns by number, so that both can be joined in SQL.
constexpr ColumnSpec kMemberColumns[] = {
    {"collective", kInt64, true, "Number of the collective (NtCollectives.collective)"},
    {"arrival", kInt64, true, "Position in the order of arrival", "", "0"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Global rank of the core"},
    RisingNs("start_ts", "Time of arrival"),
    RisingNs("end_ts", "Time of leaving"),
    {"is_open", kBool, true, "The time of leaving is unknown"},
    {"clock_bound_ns", kInt64, false, "Largest error of start_ts; null if unknown", "ns"},
};

// Intervals have a fixed length; after the last with a transfer follows one of 0 bytes.
constexpr ColumnSpec kBandwidthColumns[] = {
    RisingNs("timestamp", "Start of the interval"),
    {"duration_ns", kInt64, true, "Length of the interval", "ns"},
    {"instance_id", kText, true, "Instance of the core"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Global rank of the core"},
    {"direction", kText, true, "Direction", "", "", "", "", "host_to_device,device_to_host"},
    {"bytes", kDouble, true, "Bytes moved in the interval", "bytes"},
    {"bytes_per_second", kDouble, true, "Rate in the interval", "bytes/s"},
};

// A row for each boot of an instance, with or without a model.
constexpr ColumnSpec kClockColumns[] = {
    {"instance_id", kText, true, "Instance"},
    {"is_known", kBool, true, "A model of the clock exists"},
    {"offset_ns", kInt64, false, "How far the reference clock is ahead of it at the capture's end",
     "ns"},
    {"drift_ppb", kInt64, false, "Growth of the offset per second", "ns/s"},
    {"bound_ns", kInt64, false, "Largest error of the instance's aligned times; null if unknown",
     "ns"},
    {"likely_bound_ns", kInt64, false, "Likely error of the instance's aligned times", "ns"},
    {"exchanges", kInt64, false, "Number of answered probes"},
    {"sources", kText, false, "Sources of the clock evidence, separated by commas", "", "udp,phc"},
};

// A row for each stream, place and reason with a loss.
constexpr ColumnSpec kLossColumns[] = {
    {"instance_id", kText, true, "Instance of the stream"},
    {"process_id", kInt64, true, "Process of the worker"},
    {"nc_idx", kInt64, false, "Logical core"},
    {"worker_gid", kInt64, false, "Global rank of the core"},
    {"stream", kText, true, "Stream, as text"},
    {"place", kText, true, "Where events were lost", "", "runtime ring"},
    {"reason", kText, true, "Why events were lost", "", "overwritten"},
    {"events", kInt64, true, "Number of lost events", "", "", "0"},
    {"is_unknown", kBool, true, "More events were lost, but could not be counted"},
    {"first_raw_ts", kInt64, false, "Earliest raw timestamp around the loss", "ns"},
    {"last_raw_ts", kInt64, false, "Latest raw timestamp around the loss", "ns"},
    {"detail", kText, false, "Further details"},
};

// A row for each verdict and each refusal, in the order of the answer. WriteVerdictTable gives the
// values.
constexpr ColumnSpec kVerdictColumns[] = {
    {"capture_id", kText, true, "Id of the capture"},
    {"is_refusal", kBool, true, "The cores were not judged, for the reason given"},
    {"kind", kText, false, "Kind of the verdict; null for a refusal", "", "slow-core", "", "",
     "slow-core,slow-host,slow-process,input-stall,memory-stall,host-code,slow-collective,"
     "uneven-role,uneven-data,hang-not-entered,hang-inside,dead-worker,device-error"},
    {"reason", kText, false, "Reason of the refusal; null for a verdict", "", "losses", "", "",
     "losses,few-peers,role-unknown,coverage,contradiction,two-candidates,unexplained,"
     "too-short,no-canary,limit"},
    {"worker_gids", kInt64List, false,
     "Known global ranks of the suspects, or of the cores that were not judged; the first 1,024"},
    {"suspects", kTextList, false, "The same cores as text, with those of unknown rank", "",
     "i-0abc pid 4711 nc 3"},
    {"cores", kInt64, true, "Number of these cores", "", "1"},
    {"instance_id", kText, false, "Instance of these cores; null if there are several or none"},
    {"phase", kText, false, "Where the excess is; null for a refusal", "", "device", "", "",
     "submit,pre,device,wait,transfer,post,gap"},
    {"role", kText, false, "Model and position in its sequence of executions"},
    {"peers", kInt64, true, "Number of cores that the suspects were compared with"},
    {"ratio", kDouble, false, "Own work to that of the median peer; null for hangs"},
    {"z", kDouble, false, "How far beyond the noise of the peers; null for hangs"},
    {"executions", kInt64, true, "In how many executions this held, or how many were not judged"},
    {"judged", kInt64, true, "Executions that were judged"},
    {"since_ts", kInt64, false, "Start of the first execution in which this held", "ns"},
    {"until_ts", kInt64, false, "End of the last", "ns"},
    {"cost_ns", kInt64, true, "Exposed wait of a step that the excess explains", "ns"},
    {"step_ns", kInt64, true, "Length of a step, median", "ns"},
    {"total_cost_ns", kInt64, true, "Exposed wait of all steps from since_ts to until_ts", "ns"},
    {"waiting", kInt64, true, "Number of cores that waited for the suspects"},
    {"exec_id", kUint64, false, "Id of an execution that shows it"},
    {"op_id", kUint64, false, "Id of the collective that they wait in"},
    {"text", kText, true, "The verdict or refusal as neurontrace why prints it"},
    {"ruled_out", kText, false, "Causes that are excluded, each with its figure"},
    {"missing", kText, false, "What a refusal lacks, and how to get it"},
};

}  // namespace

// The name of a table is also that of its file; only the first has row groups of another size.
const TableSpec kSystemProfileEvents = {"SystemProfileEvents",
                                        "Events of the runtime, the hardware and frameworks",
                                        kEventColumns, size_t{12} << 20};
const TableSpec kCpuUsage = {"CpuUsage", "Utilization of a host's processors", kCpuColumns};
const TableSpec kHostMemUsage = {"HostMemUsage", "Memory in use on a host", kMemoryColumns};
const TableSpec kSystemProfileHbmUsage = {
    "SystemProfileHbmUsage", "Memory in use on a device after each allocation and release",
    kHbmColumns};
const TableSpec kSystemProfileMetadata = {"SystemProfileMetadata", "Properties of the profile",
                                          kMetadataColumns};
const TableSpec kDeviceProfileList = {"DeviceProfileList",
                                      "Device profiles (NTFF) among the capture's artifacts",
                                      kDeviceProfileColumns};
const TableSpec kWarning = {"Warning", "Missing data and other warnings", kWarningColumns};
const TableSpec kFlow = {"Flow", "Relations between events", kFlowColumns};
const TableSpec kSchemaFields = {"SchemaFields", "Every column of every table", kSchemaColumns};

const TableSpec kNtExecutions = {"NtExecutions", "Executions of models on logical cores",
                                 kExecutionColumns};
const TableSpec kNtSteps = {"NtSteps", "Steps of workers or cores", kStepColumns};
const TableSpec kNtCollectives = {"NtCollectives", "Collective operations of several cores",
                                  kCollectiveColumns};
const TableSpec kNtCollectiveMembers = {"NtCollectiveMembers", "One core's part in a collective",
                                        kMemberColumns};
const TableSpec kNtBandwidth = {"NtBandwidth", "Bytes that a core moved in one interval",
                                kBandwidthColumns};
const TableSpec kNtClocks = {"NtClocks", "State of an instance's clock", kClockColumns};
const TableSpec kNtLosses = {"NtLosses", "Known losses of events", kLossColumns};
const TableSpec kNtVerdicts = {
    "NtVerdicts", "Ranks that are slow or hung, and parts that were not judged", kVerdictColumns};

std::span<const TableSpec* const> AllTables() {
  static constexpr std::array<const TableSpec*, 17> kTables = {&kSystemProfileEvents,
                                                               &kCpuUsage,
                                                               &kHostMemUsage,
                                                               &kSystemProfileHbmUsage,
                                                               &kSystemProfileMetadata,
                                                               &kDeviceProfileList,
                                                               &kWarning,
                                                               &kFlow,
                                                               &kSchemaFields,
                                                               &kNtExecutions,
                                                               &kNtSteps,
                                                               &kNtCollectives,
                                                               &kNtCollectiveMembers,
                                                               &kNtBandwidth,
                                                               &kNtClocks,
                                                               &kNtLosses,
                                                               &kNtVerdicts};
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
    case kInt64List:
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
