// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/record_codec.h"

#include "aggregator/store/identity_codec.h"
#include "aggregator/store/stored_bytes.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kAgentVersion = 1;
constexpr uint64_t kWorkerVersion = 2;  // added the facts of the worker's job
// 2 added how agents were away, workers that had no part, and the warnings of the end; 3 what
// captures on demand ask for, how they began, and the outcome of each worker; 4 the workers'
// remarks.
constexpr uint64_t kCaptureVersion = 4;

// At least, each field having one.
constexpr size_t kAgentPartBytesMin = 6;
constexpr size_t kWorkerStatusBytesMin = 12;
constexpr size_t kBystanderBytesMin = 9;
constexpr size_t kGidRangeBytesMin = 2;
constexpr size_t kCoreInfoBytesMin = 2;

absl::Status CheckVersion(uint64_t version, uint64_t newest, std::string_view what) {
  if (version >= 1 && version <= newest) return absl::OkStatus();
  return DataLoss("{} record: version {} where 1 to {} are known", what, version, newest);
}

absl::Status CheckFinished(const StoredBytesReader& in, std::string_view what, size_t bytes) {
  if (in.Finished()) return absl::OkStatus();
  return DataLoss("{} record: its {} bytes do not fit", what, bytes);
}

void WriteSpec(const CaptureSpec& spec, StoredBytesWriter& out) {
  out.String(spec.name);
  out.String(spec.job);
  WriteStrings(spec.instance_ids, out);
  out.Uint(spec.neuron_cores.size());
  for (const uint32_t core : spec.neuron_cores) out.Uint(core);
  WriteStrings(spec.event_types, out);
  out.Uint(spec.duration_ns);
  out.Uint(spec.ring_events_per_core);
  out.Bool(spec.include_neuron);
  out.Bool(spec.include_framework);
}

CaptureSpec ReadSpec(StoredBytesReader& in) {
  CaptureSpec spec;
  spec.name = in.String();
  spec.job = in.String();
  spec.instance_ids = ReadStrings(in);
  spec.neuron_cores.resize(in.Count());
  for (uint32_t& core : spec.neuron_cores) core = in.Uint32();
  spec.event_types = ReadStrings(in);
  spec.duration_ns = in.Uint();
  spec.ring_events_per_core = in.Uint();
  spec.include_neuron = in.Bool();
  spec.include_framework = in.Bool();
  return spec;
}

void WriteAgentPart(const CaptureAgentPart& part, StoredBytesWriter& out) {
  out.String(part.agent_id);
  out.String(part.instance_id);
  out.Uint(part.matched_workers);
  out.Bool(part.reported);
  out.Bool(part.finished);
  out.Bool(part.vanished);
}

CaptureAgentPart ReadAgentPart(StoredBytesReader& in) {
  CaptureAgentPart part;
  part.agent_id = in.String();
  part.instance_id = in.String();
  part.matched_workers = in.Uint32();
  part.reported = in.Bool();
  part.finished = in.Bool();
  part.vanished = in.Bool();
  return part;
}

void WriteWorkerStatus(const CaptureWorkerStatus& status, StoredBytesWriter& out) {
  WriteWorkerIdentity(status.worker, out);
  out.Uint(static_cast<uint64_t>(status.state));
  out.String(status.detail);
  out.Uint(status.events_read);
  out.Uint(status.events_stored);
  out.Uint(status.events_lost);
  out.Bool(status.framework);
  out.Uint(status.streams);
}

CaptureWorkerStatus ReadWorkerStatus(const CaptureId& capture, StoredBytesReader& in) {
  CaptureWorkerStatus status;
  status.capture_id = capture;
  status.worker = ReadWorkerIdentity(in);
  status.state = in.EnumUpTo(CaptureWorkerState::kSuspended);
  status.detail = in.String();
  status.events_read = in.Uint();
  status.events_stored = in.Uint();
  status.events_lost = in.Uint();
  status.framework = in.Bool();
  status.streams = in.Uint32();
  return status;
}

void WriteBystander(const CaptureBystander& bystander, StoredBytesWriter& out) {
  WriteWorkerIdentity(bystander.worker, out);
  out.String(bystander.agent_id);
  out.Uint(static_cast<uint64_t>(bystander.reason));
  out.Uint(static_cast<uint64_t>(bystander.state));
  out.String(bystander.detail);
}

CaptureBystander ReadBystander(StoredBytesReader& in) {
  CaptureBystander bystander;
  bystander.worker = ReadWorkerIdentity(in);
  bystander.agent_id = in.String();
  bystander.reason = in.EnumUpTo(BystanderReason::kNotReported);
  bystander.state = in.EnumUpTo(WorkerState::kNoTap);
  bystander.detail = in.String();
  return bystander;
}

// What version 2 added stands behind version 1's fields.
void WriteAddedByVersion2(const CaptureRecord& record, StoredBytesWriter& out) {
  for (const CaptureAgentPart& part : record.agents) {
    out.Bool(part.given_up);
    out.Uint(part.away_since_realtime_ns);
  }
  for (const CaptureWorkerStatus& status : record.workers) {
    out.Uint(static_cast<uint64_t>(status.worker_state));
  }
  out.Uint(record.bystanders.size());
  for (const CaptureBystander& bystander : record.bystanders) WriteBystander(bystander, out);
  WriteStrings(record.end_warnings, out);
}

void ReadAddedByVersion2(StoredBytesReader& in, CaptureRecord& record) {
  for (CaptureAgentPart& part : record.agents) {
    part.given_up = in.Bool();
    part.away_since_realtime_ns = in.Uint();
  }
  for (CaptureWorkerStatus& status : record.workers) {
    status.worker_state = in.EnumUpTo(WorkerState::kNoTap);
  }
  record.bystanders.resize(in.Count(kBystanderBytesMin));
  for (CaptureBystander& bystander : record.bystanders) bystander = ReadBystander(in);
  record.end_warnings = ReadStrings(in);
}

void WriteOnDemand(const CaptureSpec& spec, StoredBytesWriter& out) {
  out.Uint(static_cast<uint64_t>(spec.mode));
  WriteKeyValues(spec.job_facts, out);
  out.Uint(spec.worker_gids.size());
  for (const GidRange& range : spec.worker_gids) {
    out.Uint(static_cast<uint64_t>(range.first));
    out.Uint(static_cast<uint64_t>(range.last));
  }
  out.Bool(spec.all_events);
  WriteKeyValues(spec.labels, out);
  out.Uint(spec.require_percent);
  out.Bool(spec.at_next_execution);
  out.Uint(spec.at_execution);
  out.Uint(spec.executions);
  out.Uint(spec.bytes_max);
  out.Uint(spec.retention_ns);
  out.Uint(spec.retention_bytes);
  out.Uint(spec.last_ns);
  out.String(spec.flight_recorder.empty() ? std::string_view() : spec.flight_recorder.bytes());
  out.Uint(spec.budget_core_ppm);
  out.Uint(spec.budget_bytes_per_second);
  out.String(spec.cause);
}

absl::Status ReadOnDemand(StoredBytesReader& in, CaptureSpec& spec) {
  spec.mode = in.EnumUpTo(CaptureMode::kPreview);
  spec.job_facts = ReadKeyValues(in);
  spec.worker_gids.resize(in.Count(kGidRangeBytesMin));
  for (GidRange& range : spec.worker_gids) {
    range.first = static_cast<int64_t>(in.Uint());
    range.last = static_cast<int64_t>(in.Uint());
  }
  spec.all_events = in.Bool();
  spec.labels = ReadKeyValues(in);
  spec.require_percent = in.Uint32();
  spec.at_next_execution = in.Bool();
  spec.at_execution = in.Uint();
  spec.executions = in.Uint();
  spec.bytes_max = in.Uint();
  spec.retention_ns = in.Uint();
  spec.retention_bytes = in.Uint();
  spec.last_ns = in.Uint();
  if (const std::string id = in.Bytes(); !id.empty()) {
    ASSIGN_OR_RETURN(spec.flight_recorder, CaptureId::FromBytes(id));
  }
  spec.budget_core_ppm = in.Uint32();
  spec.budget_bytes_per_second = in.Uint();
  spec.cause = in.String();
  return absl::OkStatus();
}

void WriteAddedByVersion3(const CaptureRecord& record, StoredBytesWriter& out) {
  WriteOnDemand(record.spec, out);
  out.Bool(record.begin.has_value());
  const CaptureBegin begin = record.begin.value_or(CaptureBegin());
  out.Uint(begin.reference_ns);
  out.Uint(begin.bound_ns);
  out.Uint(begin.first_execution);
  out.Uint(begin.last_execution);
  out.Uint(record.armed_realtime_ns);
  for (const CaptureWorkerStatus& status : record.workers) {
    out.Uint(static_cast<uint64_t>(status.obstacle));
    out.Uint(status.bytes_read);
    out.Uint(status.begun_realtime_ns);
    out.Uint(static_cast<uint64_t>(status.begin_offset_ns));
    out.Bool(status.begun_as_planned);
    out.Uint(status.first_execution);
    out.Uint(status.newest_execution);
    out.Uint(status.reaches_back_ns);
    out.Bool(status.joined_late);
  }
}

absl::Status ReadAddedByVersion3(StoredBytesReader& in, CaptureRecord& record) {
  RETURN_IF_ERROR(ReadOnDemand(in, record.spec));
  const bool has_begun = in.Bool();
  CaptureBegin begin;
  begin.reference_ns = in.Uint();
  begin.bound_ns = in.Uint();
  begin.first_execution = in.Uint();
  begin.last_execution = in.Uint();
  if (has_begun) record.begin = begin;
  record.armed_realtime_ns = in.Uint();
  for (CaptureWorkerStatus& status : record.workers) {
    status.obstacle = in.EnumUpTo(CaptureObstacle::kNoAnswer);
    status.bytes_read = in.Uint();
    status.begun_realtime_ns = in.Uint();
    status.begin_offset_ns = static_cast<int64_t>(in.Uint());
    status.begun_as_planned = in.Bool();
    status.first_execution = in.Uint();
    status.newest_execution = in.Uint();
    status.reaches_back_ns = in.Uint();
    status.joined_late = in.Bool();
  }
  return absl::OkStatus();
}

void WriteAddedByVersion4(const CaptureRecord& record, StoredBytesWriter& out) {
  for (const CaptureWorkerStatus& status : record.workers) {
    WriteRemarks(status.remarks, out);
    out.Bool(status.events_lost_unknown);
  }
}

void ReadAddedByVersion4(StoredBytesReader& in, CaptureRecord& record) {
  for (CaptureWorkerStatus& status : record.workers) {
    status.remarks = ReadRemarks(in);
    status.events_lost_unknown = in.Bool();
  }
}

// A capture of version 1 that has ended told its agents that it was over.
void GiveUpVanished(CaptureRecord& record) {
  for (CaptureAgentPart& part : record.agents) part.given_up = part.vanished;
}

void WriteWorkerInfo(const WorkerInfo& info, StoredBytesWriter& out) {
  WriteWorkerIdentity(info.identity, out);
  out.Uint(static_cast<uint64_t>(info.state));
  out.String(info.detail);
  out.String(info.command);
  out.String(info.job);
  out.Uint(info.cores.size());
  for (const CoreInfo& core : info.cores) {
    out.Uint(core.nc_idx);
    WriteEvidence(core.rank_evidence, out);
  }
  out.String(info.runtime_version);
  out.Bool(info.pid_claimed);
  WriteStrings(info.warnings, out);
}

WorkerInfo ReadWorkerInfo(StoredBytesReader& in) {
  WorkerInfo info;
  info.identity = ReadWorkerIdentity(in);
  info.state = in.EnumUpTo(WorkerState::kNoTap);
  info.detail = in.String();
  info.command = in.String();
  info.job = in.String();
  info.cores.resize(in.Count(kCoreInfoBytesMin));
  for (CoreInfo& core : info.cores) {
    core.nc_idx = in.Uint32();
    core.rank_evidence = ReadEvidence(in);
  }
  info.runtime_version = in.String();
  info.pid_claimed = in.Bool();
  info.warnings = ReadStrings(in);
  return info;
}

}  // namespace

std::string EncodeCaptureRecord(const CaptureRecord& record) {
  StoredBytesWriter out(kCaptureVersion);
  WriteSpec(record.spec, out);
  out.Uint(static_cast<uint64_t>(record.state));
  out.Uint(record.started_realtime_ns);
  out.Uint(record.stopped_realtime_ns);
  out.Uint(record.ended_realtime_ns);
  out.Uint(record.agents.size());
  for (const CaptureAgentPart& part : record.agents) WriteAgentPart(part, out);
  out.Uint(record.workers.size());
  for (const CaptureWorkerStatus& status : record.workers) WriteWorkerStatus(status, out);
  WriteStrings(record.warnings, out);
  WriteAddedByVersion2(record, out);
  WriteAddedByVersion3(record, out);
  WriteAddedByVersion4(record, out);
  return out.Take();
}

absl::StatusOr<CaptureRecord> DecodeCaptureRecord(const CaptureId& id, std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  RETURN_IF_ERROR(CheckVersion(version, kCaptureVersion, "capture"));
  CaptureRecord record;
  record.id = id;
  record.spec = ReadSpec(in);
  record.state = in.EnumUpTo(CaptureState::kNotBegun);
  record.started_realtime_ns = in.Uint();
  record.stopped_realtime_ns = in.Uint();
  record.ended_realtime_ns = in.Uint();
  record.agents.resize(in.Count(kAgentPartBytesMin));
  for (CaptureAgentPart& part : record.agents) part = ReadAgentPart(in);
  record.workers.resize(in.Count(kWorkerStatusBytesMin));
  for (CaptureWorkerStatus& status : record.workers) status = ReadWorkerStatus(id, in);
  record.warnings = ReadStrings(in);
  if (version >= 2) {
    ReadAddedByVersion2(in, record);
  } else {
    GiveUpVanished(record);
  }
  if (version >= 3) RETURN_IF_ERROR(ReadAddedByVersion3(in, record));
  if (version >= 4) ReadAddedByVersion4(in, record);
  RETURN_IF_ERROR(CheckFinished(in, "capture", value.size()));
  return record;
}

std::string EncodeAgentRecord(const AgentRecord& record) {
  StoredBytesWriter out(kAgentVersion);
  out.Uint(record.info.protocol_version);
  out.String(record.info.agent_id);
  out.String(record.info.agent_version);
  out.String(record.info.instance_id);
  out.String(record.info.instance_id_source);
  out.String(record.info.boot_id);
  out.String(record.info.host_name);
  out.String(record.info.instance_type);
  out.Uint(record.first_seen_realtime_ns);
  out.Uint(record.last_seen_realtime_ns);
  return out.Take();
}

absl::StatusOr<AgentRecord> DecodeAgentRecord(std::string_view value) {
  StoredBytesReader in(value);
  RETURN_IF_ERROR(CheckVersion(in.Uint(), kAgentVersion, "agent"));
  AgentRecord record;
  record.info.protocol_version = in.Uint32();
  record.info.agent_id = in.String();
  record.info.agent_version = in.String();
  record.info.instance_id = in.String();
  record.info.instance_id_source = in.String();
  record.info.boot_id = in.String();
  record.info.host_name = in.String();
  record.info.instance_type = in.String();
  record.first_seen_realtime_ns = in.Uint();
  record.last_seen_realtime_ns = in.Uint();
  RETURN_IF_ERROR(CheckFinished(in, "agent", value.size()));
  return record;
}

std::string EncodeWorkerRecord(const WorkerRecord& record) {
  StoredBytesWriter out(kWorkerVersion);
  WriteWorkerInfo(record.info, out);
  out.String(record.agent_id);
  out.Uint(record.first_seen_realtime_ns);
  out.Uint(record.last_seen_realtime_ns);
  WriteKeyValues(record.info.job_facts, out);
  return out.Take();
}

absl::StatusOr<WorkerRecord> DecodeWorkerRecord(std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  RETURN_IF_ERROR(CheckVersion(version, kWorkerVersion, "worker"));
  WorkerRecord record;
  record.info = ReadWorkerInfo(in);
  record.agent_id = in.String();
  record.first_seen_realtime_ns = in.Uint();
  record.last_seen_realtime_ns = in.Uint();
  if (version >= 2) record.info.job_facts = ReadKeyValues(in);
  RETURN_IF_ERROR(CheckFinished(in, "worker", value.size()));
  return record;
}

}  // namespace neurontrace
