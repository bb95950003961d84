// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_artifacts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

constexpr size_t kPieceBytes = 1u << 20;

// The texts of an entry: a path of three names, an instance, an agent, a hash and a reason.
constexpr size_t kEntryBytesMax =
    5 * limits::kArtifactNameBytesMax + limits::kArtifactReasonBytesMax + 256;
static_assert(limits::kArtifactsListedMax * kEntryBytesMax < limits::kGrpcMessageBytesMax,
              "a list must fit into a message");

// Returns whether the caller may see a file. Its place names a process only in the process's own
// pid namespace, which is what the vendor's profiler knows: the same rule as for deliveries.
bool IsOf(const Caller& caller, const CaptureRecord& record, const ArtifactPlace& place) {
  if (!caller.is_limited()) return true;
  return place.pid != 0 && std::ranges::any_of(record.workers, [&place](const auto& worker) {
           return worker.worker.pid == place.pid && worker.worker.instance_id == place.instance_id;
         });
}

v1::Artifact ToMessage(const ArtifactReference& reference) {
  v1::Artifact message;
  message.set_path(reference.place.path());
  message.set_kind(std::string(ToString(reference.place.kind)));
  message.set_sha256(HexOf(reference.sha256));
  message.set_bytes(reference.bytes);
  message.set_modified_realtime_ns(reference.modified_realtime_ns);
  message.set_agent_id(reference.agent_id);
  message.set_instance_id(reference.place.instance_id);
  message.set_pid(reference.place.pid);
  return message;
}

v1::MissingArtifact ToMessage(const ArtifactForgone& forgone) {
  v1::MissingArtifact message;
  message.set_path(forgone.place.path());
  message.set_bytes(forgone.bytes);
  message.set_reason(forgone.reason);
  message.set_agent_id(forgone.agent_id);
  return message;
}

}  // namespace

absl::StatusOr<v1::ListArtifactsReply> CaptureArtifacts::List(const Caller& caller,
                                                              const CaptureRecord& record) const {
  ASSIGN_OR_RETURN(const std::vector<ArtifactReference> references, store_.List(record.id));
  ASSIGN_OR_RETURN(const std::vector<ArtifactForgone> all_forgone, store_.Forgone(record.id));
  v1::ListArtifactsReply reply;
  uint64_t hidden = 0;
  uint64_t not_listed = 0;
  size_t listed = 0;
  const auto takes = [&](const ArtifactPlace& place) {
    if (!IsOf(caller, record, place)) {
      ++hidden;
      return false;
    }
    if (listed >= limits::kArtifactsListedMax) {
      ++not_listed;
      return false;
    }
    ++listed;
    return true;
  };
  for (const ArtifactReference& reference : references) {
    if (takes(reference.place)) *reply.add_artifacts() = ToMessage(reference);
  }
  for (const ArtifactForgone& forgone : all_forgone) {
    if (takes(forgone.place)) *reply.add_missing() = ToMessage(forgone);
  }
  reply.set_hidden(hidden);
  reply.set_not_listed(not_listed);
  return reply;
}

absl::StatusOr<ArtifactReference> CaptureArtifacts::Find(const Caller& caller,
                                                         const CaptureRecord& record,
                                                         const std::string& sha256_hex) const {
  ASSIGN_OR_RETURN(std::vector<ArtifactReference> references, store_.List(record.id));
  for (ArtifactReference& reference : references) {
    if (HexOf(reference.sha256) == sha256_hex && IsOf(caller, record, reference.place)) {
      return std::move(reference);
    }
  }
  return NotFound("capture {} has no artifact with this SHA-256; list its artifacts again",
                  record.id.ToString());
}

absl::Status CaptureArtifacts::Read(const ArtifactReference& artifact,
                                    const ArtifactWriter& write) const {
  const absl::Status is_gone(absl::StatusCode::kCancelled, "the client stopped reading");
  v1::GetArtifactReply reply;
  *reply.mutable_artifact() = ToMessage(artifact);
  if (!write(reply)) return is_gone;
  Sha256 hash;
  for (uint64_t offset = 0; offset < artifact.bytes;) {
    ASSIGN_OR_RETURN(std::string piece, store_.files().Read(artifact.sha256, offset, kPieceBytes));
    if (piece.empty()) break;
    hash.Update(piece);
    offset += piece.size();
    reply.set_data(std::move(piece));
    if (!write(reply)) return is_gone;
  }
  if (hash.Finish() == artifact.sha256) return absl::OkStatus();
  return DataLoss("artifact {} is damaged on the aggregator's disk", artifact.place.path());
}

}  // namespace neurontrace
