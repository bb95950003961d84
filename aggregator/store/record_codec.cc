// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/record_codec.h"

#include "aggregator/store/identity_codec.h"
#include "aggregator/store/stored_bytes.h"
#include "base/status.h"

namespace neurontrace {
namespace {

constexpr uint64_t kInventoryVersion = 1;  // of agent and worker records
// 2 added how agents were away, workers that had no part, and the warnings of the end.
constexpr uint64_t kCaptureVersion = 2;

absl::Status CheckVersion(StoredBytesReader& in, std::string_view what) {
  const uint64_t version = in.Uint();
  if (version == kInventoryVersion) return absl::OkStatus();
  return DataLoss("{} record: version {} where {} is known", what, version, kInventoryVersion);
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
  status.state = in.EnumUpTo(CaptureWorkerState::kLost);
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
  bystander.state = in.EnumUpTo(WorkerState::kFailed);
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
    status.worker_state = in.EnumUpTo(WorkerState::kFailed);
  }
  record.bystanders.resize(in.Count());
  for (CaptureBystander& bystander : record.bystanders) bystander = ReadBystander(in);
  record.end_warnings = ReadStrings(in);
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
  info.state = in.EnumUpTo(WorkerState::kFailed);
  info.detail = in.String();
  info.command = in.String();
  info.job = in.String();
  info.cores.resize(in.Count());
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
  return out.Take();
}

absl::StatusOr<CaptureRecord> DecodeCaptureRecord(const CaptureId& id, std::string_view value) {
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  if (version < 1 || version > kCaptureVersion) {
    return DataLoss("capture record: version {} where 1 to {} are known", version, kCaptureVersion);
  }
  CaptureRecord record;
  record.id = id;
  record.spec = ReadSpec(in);
  record.state = in.EnumUpTo(CaptureState::kIncomplete);
  record.started_realtime_ns = in.Uint();
  record.stopped_realtime_ns = in.Uint();
  record.ended_realtime_ns = in.Uint();
  record.agents.resize(in.Count());
  for (CaptureAgentPart& part : record.agents) part = ReadAgentPart(in);
  record.workers.resize(in.Count());
  for (CaptureWorkerStatus& status : record.workers) status = ReadWorkerStatus(id, in);
  record.warnings = ReadStrings(in);
  if (version >= 2) {
    ReadAddedByVersion2(in, record);
  } else {
    GiveUpVanished(record);
  }
  RETURN_IF_ERROR(CheckFinished(in, "capture", value.size()));
  return record;
}

std::string EncodeAgentRecord(const AgentRecord& record) {
  StoredBytesWriter out(kInventoryVersion);
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
  RETURN_IF_ERROR(CheckVersion(in, "agent"));
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
  StoredBytesWriter out(kInventoryVersion);
  WriteWorkerInfo(record.info, out);
  out.String(record.agent_id);
  out.Uint(record.first_seen_realtime_ns);
  out.Uint(record.last_seen_realtime_ns);
  return out.Take();
}

absl::StatusOr<WorkerRecord> DecodeWorkerRecord(std::string_view value) {
  StoredBytesReader in(value);
  RETURN_IF_ERROR(CheckVersion(in, "worker"));
  WorkerRecord record;
  record.info = ReadWorkerInfo(in);
  record.agent_id = in.String();
  record.first_seen_realtime_ns = in.Uint();
  record.last_seen_realtime_ns = in.Uint();
  RETURN_IF_ERROR(CheckFinished(in, "worker", value.size()));
  return record;
}

}  // namespace neurontrace
