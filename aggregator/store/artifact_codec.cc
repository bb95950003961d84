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

constexpr uint64_t kReferenceVersion = 2;  // of 1 and below the root is not known
constexpr uint64_t kForgoneVersion = 2;
constexpr size_t kPlaceKeyBytes = 1 + CaptureId::kBytes + kSha256Bytes;

// Of a reference or a note.
template <typename Entry>
std::string PlaceKey(char kind, const Entry& entry) {
  constexpr std::string_view kBetween("\0", 1);
  Sha256 sha;
  sha.Update(entry.agent_id);
  sha.Update(kBetween);
  sha.Update(entry.place.path());
  if (!entry.root.empty()) {
    sha.Update(kBetween);
    sha.Update(entry.root);
  }
  return kind + std::string(entry.capture_id.bytes()) + sha.Finish();
}

// After the version, and what follows in both.
template <typename Entry>
void WriteWhere(const Entry& entry, StoredBytesWriter& out) {
  out.String(entry.agent_id);
  out.String(entry.root);
  out.String(entry.place.directory);
  out.String(entry.place.session);
  out.String(entry.place.name);
}

// False for what is no place.
template <typename Entry>
bool ReadWhere(uint64_t version, StoredBytesReader& in, Entry& entry) {
  entry.agent_id = in.String();
  if (version >= 2) entry.root = in.String();
  const std::string directory = in.String();
  const std::string session = in.String();
  const std::string name = in.String();
  auto place = MakeArtifactPlace(directory, session, name);
  if (!place.ok()) return false;
  entry.place = *std::move(place);
  return entry.root.empty() || IsArtifactRoot(entry.root);
}

}  // namespace

std::string ReferencePrefix(const CaptureId& capture) {
  return kReferenceKey + std::string(capture.bytes());
}

std::string ForgonePrefix(const CaptureId& capture) {
  return kForgoneKey + std::string(capture.bytes());
}

std::string ReferenceKey(const ArtifactReference& reference) {
  return PlaceKey(kReferenceKey, reference);
}

std::string ForgoneKey(const ArtifactReference& reference) {
  return PlaceKey(kForgoneKey, reference);
}

std::string ForgoneKey(const ArtifactForgone& forgone) { return PlaceKey(kForgoneKey, forgone); }

std::string OwnerPrefix(std::string_view sha256) { return kOwnerKey + std::string(sha256); }

std::string OwnerKey(std::string_view sha256, std::string_view reference_key) {
  return OwnerPrefix(sha256) + std::string(reference_key.substr(1));
}

std::string EncodeReference(const ArtifactReference& reference) {
  StoredBytesWriter out(kReferenceVersion);
  WriteWhere(reference, out);
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
  const bool is_placed = ReadWhere(version, in, reference);
  reference.sha256 = in.Bytes();
  reference.bytes = in.Uint();
  reference.modified_realtime_ns = in.Uint();
  if (version == 0 || version > kReferenceVersion || !in.Finished() || !is_placed ||
      reference.sha256.size() != kSha256Bytes) {
    return DataLoss("a reference of capture {} to an artifact cannot be read",
                    reference.capture_id.ToString());
  }
  if (ReferenceKey(reference) != key) {
    return DataLoss("a reference to an artifact is misplaced");
  }
  return reference;
}

std::string EncodeForgone(const ArtifactForgone& forgone) {
  StoredBytesWriter out(kForgoneVersion);
  WriteWhere(forgone, out);
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
  const bool is_placed = ReadWhere(version, in, forgone);
  forgone.bytes = in.Uint();
  forgone.reason = CleanText(in.View(), limits::kArtifactReasonBytesMax);
  if (version == 0 || version > kForgoneVersion || !in.Finished() || !is_placed) {
    return DataLoss("a note of capture {} about an artifact cannot be read",
                    forgone.capture_id.ToString());
  }
  if (ForgoneKey(forgone) != key) return DataLoss("a note about an artifact is misplaced");
  return forgone;
}

bool IsArtifactEntry(std::string_view key, std::string_view value) {
  if (key.empty()) return false;
  if (key.front() == kForgoneKey) return DecodeForgone(key, value).ok();
  return key.front() == kReferenceKey && DecodeReference(key, value).ok();  // owners: made again
}

}  // namespace neurontrace
