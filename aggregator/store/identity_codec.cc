// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/identity_codec.h"

#include <algorithm>
#include <string>

namespace neurontrace {
namespace {

// Each field is a byte at least.
// What marks a claim stands in the number of its source, so that values from before are read alike.
constexpr uint64_t kGuessedBit = 32;
constexpr uint64_t kContradictedBit = 64;
constexpr auto kMarkedSourceMax = static_cast<RankSource>(127);
constexpr size_t kEvidenceBytesMin = 4;
constexpr size_t kLossBytesMin = 7;
constexpr size_t kKeyValueBytesMin = 2;
constexpr size_t kRemarkBytesMin = 3;
// Of any version: one that this version does not know is shown by its number.
constexpr auto kRemarkKindMax = static_cast<RemarkKind>(79);

}  // namespace

void WriteWorkerIdentity(const WorkerIdentity& worker, StoredBytesWriter& out) {
  out.String(worker.instance_id);
  out.String(worker.boot_id);
  out.Uint(worker.pid);
  out.Uint(worker.start_time_ticks);
  out.String(worker.container_id);
}

WorkerIdentity ReadWorkerIdentity(StoredBytesReader& in) {
  WorkerIdentity worker;
  worker.instance_id = in.String();
  worker.boot_id = in.String();
  worker.pid = in.Uint32();
  worker.start_time_ticks = in.Uint();
  worker.container_id = in.String();
  return worker;
}

void WriteStreamIdentity(const StreamIdentity& stream, StoredBytesWriter& out) {
  out.String(stream.agent_id);
  WriteWorkerIdentity(stream.worker, out);
  out.Uint(static_cast<uint64_t>(stream.kind));
  out.Uint(stream.nc_idx);
  out.String(stream.name);
}

StreamIdentity ReadStreamIdentity(StoredBytesReader& in) {
  StreamIdentity stream;
  stream.agent_id = in.String();
  stream.worker = ReadWorkerIdentity(in);
  stream.kind = in.EnumUpTo(StreamKind::kHost);
  stream.nc_idx = in.Uint32();
  stream.name = in.String();
  return stream;
}

void WriteEvidence(const std::vector<RankEvidence>& evidence, StoredBytesWriter& out) {
  out.Uint(evidence.size());
  for (const RankEvidence& claim : evidence) {
    out.Uint(static_cast<uint64_t>(claim.source) | (claim.guessed ? kGuessedBit : 0) |
             (claim.contradicted ? kContradictedBit : 0));
    out.Int(claim.worker_gid);
    out.Int(claim.world_size);
    out.String(claim.detail);
  }
}

std::vector<RankEvidence> ReadEvidence(StoredBytesReader& in) {
  std::vector<RankEvidence> evidence(in.Count(kEvidenceBytesMin));
  for (RankEvidence& claim : evidence) {
    const auto marked = static_cast<uint64_t>(in.EnumUpTo(kMarkedSourceMax));
    claim.guessed = (marked & kGuessedBit) != 0;
    claim.contradicted = (marked & kContradictedBit) != 0;
    const uint64_t source = marked & (kGuessedBit - 1);
    // One that this version does not know is the worst.
    claim.source = static_cast<RankSource>(
        std::min(source, static_cast<uint64_t>(RankSource::kFrameworkFile)));
    claim.worker_gid = in.Int();
    claim.world_size = in.Int();
    claim.detail = in.String();
  }
  return evidence;
}

void WriteLosses(const std::vector<Loss>& losses, StoredBytesWriter& out) {
  out.Uint(losses.size());
  for (const Loss& loss : losses) {
    out.Uint(static_cast<uint64_t>(loss.place));
    out.Uint(static_cast<uint64_t>(loss.reason));
    out.Uint(loss.events);
    out.Bool(loss.events_unknown);
    out.Uint(loss.first_timestamp_ns);
    out.Uint(loss.last_timestamp_ns);
    out.String(loss.detail);
  }
}

std::vector<Loss> ReadLosses(StoredBytesReader& in) {
  std::vector<Loss> losses(in.Count(kLossBytesMin));
  for (Loss& loss : losses) {
    loss.place = in.EnumUpTo(LossPlace::kRetention);
    loss.reason = in.EnumUpTo(kLossReasonMax);
    loss.events = in.Uint();
    loss.events_unknown = in.Bool();
    loss.first_timestamp_ns = in.Uint();
    loss.last_timestamp_ns = in.Uint();
    loss.detail = in.String();
  }
  return losses;
}

void WriteRemarks(const std::vector<Remark>& remarks, StoredBytesWriter& out) {
  out.Uint(remarks.size());
  for (const Remark& remark : remarks) {
    out.Uint(static_cast<uint64_t>(remark.kind));
    out.Uint(remark.count);
    WriteStrings(remark.details, out);
  }
}

std::vector<Remark> ReadRemarks(StoredBytesReader& in) {
  std::vector<Remark> remarks(in.Count(kRemarkBytesMin));
  for (Remark& remark : remarks) {
    remark.kind = in.EnumUpTo(kRemarkKindMax);
    remark.count = in.Uint();
    remark.details = ReadStrings(in);
  }
  return remarks;
}

void WriteStrings(const std::vector<std::string>& strings, StoredBytesWriter& out) {
  out.Uint(strings.size());
  for (const std::string& text : strings) out.String(text);
}

std::vector<std::string> ReadStrings(StoredBytesReader& in) {
  std::vector<std::string> strings(in.Count());
  for (std::string& text : strings) text = in.String();
  return strings;
}

void WriteKeyValues(const std::vector<KeyValue>& values, StoredBytesWriter& out) {
  out.Uint(values.size());
  for (const KeyValue& value : values) {
    out.String(value.key);
    out.String(value.value);
  }
}

std::vector<KeyValue> ReadKeyValues(StoredBytesReader& in) {
  std::vector<KeyValue> values(in.Count(kKeyValueBytesMin));
  for (KeyValue& value : values) {
    value.key = in.String();
    value.value = in.String();
  }
  return values;
}

}  // namespace neurontrace
