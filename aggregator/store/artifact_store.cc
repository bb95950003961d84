// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_store.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/stored_bytes.h"
#include "base/status.h"
#include "trace/artifact_limits.h"

namespace neurontrace {
namespace {

// Of family `artifacts`: 'r', capture id, SHA-256 of agent id, 0 and path -> the reference; 'o',
// SHA-256 of the content, then the key of the reference without its first byte -> nothing.
constexpr char kReferenceKey = 'r';
constexpr char kOwnerKey = 'o';
constexpr uint64_t kReferenceVersion = 1;
constexpr size_t kReferenceKeyBytes = 1 + CaptureId::kBytes + kSha256Bytes;

std::string ReferencePrefix(const CaptureId& capture) {
  return kReferenceKey + std::string(capture.bytes());
}

std::string ReferenceKey(const ArtifactReference& reference) {
  Sha256 place;
  place.Update(reference.agent_id);
  place.Update(std::string_view("\0", 1));
  place.Update(reference.place.path());
  return ReferencePrefix(reference.capture_id) + place.Finish();
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
  if (key.size() != kReferenceKeyBytes || key.front() != kReferenceKey) {
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
  if (ReferenceKey(reference) != key) return DataLoss("a reference to an artifact is misplaced");
  return reference;
}

}  // namespace

ArtifactStore::ArtifactStore(Database& database, std::string directory)
    : database_(database), files_(std::move(directory), database.env()) {}

ArtifactStore::~ArtifactStore() = default;

absl::Status ArtifactStore::Open() {
  RETURN_IF_ERROR(files_.Open());
  const std::lock_guard lock(mutex_);
  std::set<std::string> unreferred = files_.All();
  rocksdb::WriteBatch broken;
  auto* const family = database_.family(Family::kArtifacts);
  const auto drop = [&](std::string_view key) { broken.Delete(family, ToSlice(key)); };
  std::set<std::string> owners;
  std::set<CaptureId> gone;
  RETURN_IF_ERROR(database_.ForEach(
      Family::kArtifacts, std::string(1, kReferenceKey),
      [&](std::string_view key, std::string_view value) {
        const auto reference = DecodeReference(key, value);
        if (!reference.ok() || !files_.Has(reference->sha256)) {
          drop(key);
          return absl::OkStatus();
        }
        const CaptureId& capture = reference->capture_id;
        if (!counts_.contains(capture) && !gone.contains(capture) &&
            absl::IsNotFound(database_.Get(Family::kCaptures, keys::Capture(capture)).status())) {
          gone.insert(capture);
        }
        unreferred.erase(reference->sha256);
        std::string owner = OwnerKey(reference->sha256, key);
        if (!database_.Get(Family::kArtifacts, owner).ok()) {
          broken.Put(family, ToSlice(owner), rocksdb::Slice());
        }
        owners.insert(std::move(owner));
        ++counts_[capture];
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, std::string(1, kOwnerKey),
                                    [&](std::string_view key, std::string_view) {
                                      if (!owners.contains(std::string(key))) drop(key);
                                      return absl::OkStatus();
                                    }));
  if (broken.Count() > 0) {
    RETURN_IF_ERROR(database_.Write(broken, true, "mending references to artifacts"));
  }
  for (const std::string& sha256 : unreferred) RETURN_IF_ERROR(files_.Remove(sha256));
  for (const CaptureId& capture : gone) RETURN_IF_ERROR(DeleteLocked(capture));
  return absl::OkStatus();
}

absl::StatusOr<ArtifactStore::Outcome> ArtifactStore::Refer(const ArtifactReference& reference) {
  const std::lock_guard lock(mutex_);
  if (!files_.Has(reference.sha256)) return Outcome::kMissing;
  const auto record = database_.Get(Family::kCaptures, keys::Capture(reference.capture_id));
  if (absl::IsNotFound(record.status())) return Outcome::kUnknownCapture;
  RETURN_IF_ERROR(record.status());
  const std::string key = ReferenceKey(reference);
  const std::string value = EncodeReference(reference);
  const auto known = database_.Get(Family::kArtifacts, key);
  if (known.ok() && *known == value) return Outcome::kKept;
  size_t& count = counts_[reference.capture_id];
  if (!known.ok() && count >= limits::kArtifactsPerCaptureMax) return Outcome::kTooMany;
  rocksdb::WriteBatch batch;
  auto* const family = database_.family(Family::kArtifacts);
  std::vector<std::string> replaced;
  if (known.ok()) {
    const auto before = DecodeReference(key, *known);
    if (before.ok() && before->sha256 != reference.sha256) {
      batch.Delete(family, OwnerKey(before->sha256, key));
      replaced.push_back(before->sha256);
    }
  }
  batch.Put(family, key, value);
  batch.Put(family, OwnerKey(reference.sha256, key), rocksdb::Slice());
  RETURN_IF_ERROR(database_.Write(batch, true, "keeping a reference to an artifact"));
  if (!known.ok()) ++count;
  RETURN_IF_ERROR(RemoveUnreferred(replaced));
  return Outcome::kKept;
}

absl::StatusOr<std::vector<ArtifactReference>> ArtifactStore::List(const CaptureId& capture) const {
  std::vector<ArtifactReference> references;
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, ReferencePrefix(capture),
                                    [&](std::string_view key, std::string_view value) {
                                      auto reference = DecodeReference(key, value);
                                      if (reference.ok()) {
                                        references.push_back(*std::move(reference));
                                      }
                                      return reference.status();
                                    }));
  std::sort(references.begin(), references.end(), [](const auto& a, const auto& b) {
    return std::pair(a.place.path(), a.agent_id) < std::pair(b.place.path(), b.agent_id);
  });
  return references;
}

absl::StatusOr<ArtifactStore::Totals> ArtifactStore::Sum(const CaptureId& capture) const {
  ASSIGN_OR_RETURN(const std::vector<ArtifactReference> references, List(capture));
  Totals totals;
  std::set<std::string> seen;
  for (const ArtifactReference& reference : references) {
    ++totals.references;
    if (!seen.insert(reference.sha256).second) continue;
    ++totals.contents;
    totals.bytes += reference.bytes;
  }
  return totals;
}

absl::Status ArtifactStore::RemoveUnreferred(const std::vector<std::string>& contents) {
  for (const std::string& sha256 : contents) {
    bool is_referred = false;
    RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, OwnerPrefix(sha256),
                                      [&](std::string_view, std::string_view) {
                                        is_referred = true;
                                        return absl::OkStatus();
                                      }));
    if (!is_referred) RETURN_IF_ERROR(files_.Remove(sha256));
  }
  return absl::OkStatus();
}

absl::Status ArtifactStore::DeleteCapture(const CaptureId& capture) {
  const std::lock_guard lock(mutex_);
  return DeleteLocked(capture);
}

absl::Status ArtifactStore::DeleteLocked(const CaptureId& capture) {
  rocksdb::WriteBatch batch;
  auto* const family = database_.family(Family::kArtifacts);
  std::set<std::string> contents;
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, ReferencePrefix(capture),
                                    [&](std::string_view key, std::string_view value) {
                                      const auto reference = DecodeReference(key, value);
                                      batch.Delete(family, ToSlice(key));
                                      if (!reference.ok()) return absl::OkStatus();
                                      contents.insert(reference->sha256);
                                      batch.Delete(family, OwnerKey(reference->sha256, key));
                                      return absl::OkStatus();
                                    }));
  counts_.erase(capture);
  if (batch.Count() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(database_.Write(batch, true, "deleting a capture's references to artifacts"));
  return RemoveUnreferred({contents.begin(), contents.end()});
}

bool IsArtifactEntry(std::string_view key, std::string_view value) {
  if (key.empty() || key.front() != kReferenceKey) return false;  // owners are made again
  return DecodeReference(key, value).ok();
}

}  // namespace neurontrace
