// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_codec.h"

#include <utility>

#include "aggregator/store/stored_message.h"
#include "lib/base/clean_text.h"
#include "lib/base/sha256.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

// Of the keys of references and notes: kind, capture id, and a hash that makes all keys equally
// long.
constexpr size_t kPlaceKeyBytes = 1 + CaptureId::kBytes + kSha256Bytes;

// Returns the key of an entry of this kind, which depends on its capture, agent, place and root.
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

// Makes the message with the fields that references and notes have in common.
template <typename Entry>
v1::StoredArtifact ToStored(const Entry& entry) {
  v1::StoredArtifact message;
  message.set_agent_id(CleanStored(entry.agent_id));
  message.set_root(entry.root);
  message.set_directory(entry.place.directory);
  message.set_session(entry.place.session);
  message.set_name(entry.place.name);
  message.set_bytes(entry.bytes);
  return message;
}

// Checks a key and the common fields. Computing the key again from the fields shows a value that
// damage has moved under another key. Fails with INVALID_ARGUMENT.
template <typename Entry>
absl::StatusOr<Entry> Restored(std::string_view key, char kind, const v1::StoredArtifact& message) {
  if (key.size() != kPlaceKeyBytes || key.front() != kind) {
    return InvalidArgument("malformed key");
  }
  Entry entry;
  ASSIGN_OR_RETURN(entry.capture_id, CaptureId::FromBytes(key.substr(1, CaptureId::kBytes)));
  entry.agent_id = CleanStored(message.agent_id());
  entry.root = message.root();
  if (!entry.root.empty() && !IsArtifactRoot(entry.root)) return InvalidArgument("malformed root");
  ASSIGN_OR_RETURN(entry.place,
                   MakeArtifactPlace(message.directory(), message.session(), message.name()));
  entry.bytes = message.bytes();
  if (PlaceKey(kind, entry) != key) return InvalidArgument("its key does not match its value");
  return entry;
}

}  // namespace

// The kind is first, so one scan finds all entries of a kind, and one of a kind and capture.
std::string ReferencePrefix(const CaptureId& capture) {
  return kReferenceKey + std::string(capture.bytes());
}

std::string SkippedPrefix(const CaptureId& capture) {
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
  v1::StoredArtifact message = ToStored(reference);
  message.set_sha256(reference.sha256);
  message.set_modified_realtime_ns(reference.modified_realtime_ns);
  return EncodeStored(std::move(message));
}

// The hash of the content is checked for its length only: whether the content exists is for
// ArtifactStore to find out.
absl::StatusOr<ArtifactReference> DecodeReference(std::string_view key, std::string_view value) {
  return DecodeStored<v1::StoredArtifact>(
      "artifact reference", value,
      [&](v1::StoredArtifact& message) -> absl::StatusOr<ArtifactReference> {
        ASSIGN_OR_RETURN(auto reference, Restored<ArtifactReference>(key, kReferenceKey, message));
        reference.sha256 = message.sha256();
        reference.modified_realtime_ns = message.modified_realtime_ns();
        if (reference.sha256.size() == kSha256Bytes) return reference;
        return InvalidArgument("invalid hash of {} bytes", reference.sha256.size());
      });
}

std::string EncodeForgone(const ArtifactForgone& forgone) {
  v1::StoredArtifact message = ToStored(forgone);
  message.set_reason(CleanStored(forgone.reason));
  return EncodeStored(std::move(message));
}

absl::StatusOr<ArtifactForgone> DecodeForgone(std::string_view key, std::string_view value) {
  return DecodeStored<v1::StoredArtifact>(
      "artifact note", value, [&](v1::StoredArtifact& message) -> absl::StatusOr<ArtifactForgone> {
        ASSIGN_OR_RETURN(auto forgone, Restored<ArtifactForgone>(key, kForgoneKey, message));
        // The limit protects readers of a store that somebody else has written.
        forgone.reason = CleanText(message.reason(), limits::kArtifactReasonBytesMax);
        return forgone;
      });
}

bool IsArtifactEntry(std::string_view key, std::string_view value) {
  if (key.empty()) return false;
  if (key.front() == kForgoneKey) return DecodeForgone(key, value).ok();
  return key.front() == kReferenceKey && DecodeReference(key, value).ok();  // owners: made again
}

}  // namespace neurontrace
