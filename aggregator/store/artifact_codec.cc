// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_codec.h"

#include <utility>

#include "aggregator/store/stored_bytes.h"
#include "base/clean_text.h"
#include "base/sha256.h"
#include "base/status.h"
#include "trace/artifact_limits.h"

namespace neurontrace {
namespace {

constexpr uint64_t kReferenceVersion = 1;
constexpr uint64_t kForgoneVersion = 1;
constexpr size_t kPlaceKeyBytes = 1 + CaptureId::kBytes + kSha256Bytes;

std::string PlaceKey(char kind, const CaptureId& capture, const std::string& agent_id,
                     const ArtifactPlace& place) {
  Sha256 sha;
  sha.Update(agent_id);
  sha.Update(std::string_view("\0", 1));
  sha.Update(place.path());
  return kind + std::string(capture.bytes()) + sha.Finish();
}

}  // namespace

std::string ReferencePrefix(const CaptureId& capture) {
  return kReferenceKey + std::string(capture.bytes());
}

std::string ForgonePrefix(const CaptureId& capture) {
  return kForgoneKey + std::string(capture.bytes());
}

std::string ReferenceKey(const ArtifactReference& reference) {
  return PlaceKey(kReferenceKey, reference.capture_id, reference.agent_id, reference.place);
}

std::string ForgoneKey(const ArtifactReference& reference) {
  return PlaceKey(kForgoneKey, reference.capture_id, reference.agent_id, reference.place);
}

std::string ForgoneKey(const ArtifactForgone& forgone) {
  return PlaceKey(kForgoneKey, forgone.capture_id, forgone.agent_id, forgone.place);
}

std::string OwnerPrefix(std::string_view sha256) { return kOwnerKey + std::string(sha256); }

std::string OwnerKey(std::string_view sha256, std::string_view reference_key) {
  return OwnerPrefix(sha256) + std::string(reference_key.substr(1));
}

std::string EncodeReference(const ArtifactReference& reference) {
  StoredBytesWriter out(kReferenceVersion);
  out.String(reference.agent_id);
  out.String(reference.place.directory);
  out.String(reference.place.session);
  out.String(reference.place.name);
  out.String(reference.sha256);
  out.Uint(reference.bytes);
  out.Uint(reference.modified_realtime_ns);
  return out.Take();
}

absl::StatusOr<ArtifactReference> DecodeReference(std::string_view key, std::string_view value) {
  if (key.size() != kPlaceKeyBytes || key.front() != kReferenceKey) {
    return DataLoss("a key of another form in artifacts");
  }
  ArtifactReference reference;
  ASSIGN_OR_RETURN(reference.capture_id, CaptureId::FromBytes(key.substr(1, CaptureId::kBytes)));
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  reference.agent_id = in.String();
  const std::string directory = in.String();
  const std::string session = in.String();
  const std::string name = in.String();
  reference.sha256 = in.String();
  reference.bytes = in.Uint();
  reference.modified_realtime_ns = in.Uint();
  auto place = MakeArtifactPlace(directory, session, name);
  if (version != kReferenceVersion || !in.Finished() || !place.ok() ||
      reference.sha256.size() != kSha256Bytes) {
    return DataLoss("a reference of capture {} to an artifact cannot be read",
                    reference.capture_id.ToString());
  }
  reference.place = *std::move(place);
  if (ReferenceKey(reference) != key) {
    return DataLoss("a reference to an artifact is misplaced");
  }
  return reference;
}

std::string EncodeForgone(const ArtifactForgone& forgone) {
  StoredBytesWriter out(kForgoneVersion);
  out.String(forgone.agent_id);
  out.String(forgone.place.directory);
  out.String(forgone.place.session);
  out.String(forgone.place.name);
  out.Uint(forgone.bytes);
  out.String(forgone.reason);
  return out.Take();
}

absl::StatusOr<ArtifactForgone> DecodeForgone(std::string_view key, std::string_view value) {
  if (key.size() != kPlaceKeyBytes || key.front() != kForgoneKey) {
    return DataLoss("a key of another form in artifacts");
  }
  ArtifactForgone forgone;
  ASSIGN_OR_RETURN(forgone.capture_id, CaptureId::FromBytes(key.substr(1, CaptureId::kBytes)));
  StoredBytesReader in(value);
  const uint64_t version = in.Uint();
  forgone.agent_id = in.String();
  const std::string directory = in.String();
  const std::string session = in.String();
  const std::string name = in.String();
  forgone.bytes = in.Uint();
  forgone.reason = CleanText(in.String(), limits::kArtifactReasonBytesMax);
  auto place = MakeArtifactPlace(directory, session, name);
  if (version != kForgoneVersion || !in.Finished() || !place.ok()) {
    return DataLoss("a note of capture {} about an artifact cannot be read",
                    forgone.capture_id.ToString());
  }
  forgone.place = *std::move(place);
  if (ForgoneKey(forgone) != key) return DataLoss("a note about an artifact is misplaced");
  return forgone;
}

bool IsArtifactEntry(std::string_view key, std::string_view value) {
  if (key.empty()) return false;
  if (key.front() == kForgoneKey) return DecodeForgone(key, value).ok();
  return key.front() == kReferenceKey && DecodeReference(key, value).ok();  // owners: made again
}

}  // namespace neurontrace
