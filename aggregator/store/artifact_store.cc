// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_store.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "lib/base/status.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {

ArtifactStore::ArtifactStore(Database& database, std::string directory)
    : database_(database), files_(std::move(directory), database.env()) {}

ArtifactStore::~ArtifactStore() = default;

// Compares files, references and owners in one pass each. Afterwards every reference has its
// content and its owner entry, and every content and owner entry has a reference.
absl::Status ArtifactStore::Open() {
  RETURN_IF_ERROR(files_.Open());
  const MutexLock lock(mutex_);
  std::map<CaptureId, Counts> counts;
  std::set<std::string> unreferred = files_.All();
  rocksdb::WriteBatch broken;
  auto* const family = database_.family(Family::kArtifacts);
  const auto drop = [&](std::string_view key) { broken.Delete(family, ToSlice(key)); };
  // A content must not vanish silently: its reference becomes a note.
  const auto lose = [&](const ArtifactReference& reference) {
    const ArtifactForgone forgone{reference.capture_id, reference.agent_id,
                                  reference.root,       reference.place,
                                  reference.bytes,      "its content is missing from the store"};
    broken.Put(family, ForgoneKey(forgone), EncodeForgone(forgone));
  };
  std::set<std::string> owners;
  std::set<CaptureId> gone;
  const auto meet = [&](const CaptureId& capture) {
    if (!counts.contains(capture) &&
        absl::IsNotFound(database_.Get(Family::kCaptures, keys::Capture(capture)).status())) {
      gone.insert(capture);
    }
  };
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, std::string(1, kReferenceKey),
                                    [&](std::string_view key, std::string_view value) {
                                      const auto reference = DecodeReference(key, value);
                                      if (!reference.ok() || !files_.Has(reference->sha256)) {
                                        drop(key);
                                        if (reference.ok()) lose(*reference);
                                        return absl::OkStatus();
                                      }
                                      meet(reference->capture_id);
                                      unreferred.erase(reference->sha256);
                                      std::string owner = OwnerKey(reference->sha256, key);
                                      if (!database_.Get(Family::kArtifacts, owner).ok()) {
                                        broken.Put(family, ToSlice(owner), rocksdb::Slice());
                                      }
                                      owners.insert(std::move(owner));
                                      ++counts[reference->capture_id].references;
                                      return absl::OkStatus();
                                    }));
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, std::string(1, kOwnerKey),
                                    [&](std::string_view key, std::string_view) {
                                      if (!owners.contains(std::string(key))) drop(key);
                                      return absl::OkStatus();
                                    }));
  if (broken.Count() > 0) {
    RETURN_IF_ERROR(database_.Write(broken, true, "repairing references to artifacts"));
    broken.Clear();
  }
  // Reads the notes after that write, to count those that it has added.
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, std::string(1, kForgoneKey),
                                    [&](std::string_view key, std::string_view value) {
                                      const auto forgone = DecodeForgone(key, value);
                                      if (!forgone.ok()) {
                                        drop(key);
                                        return absl::OkStatus();
                                      }
                                      meet(forgone->capture_id);
                                      ++counts[forgone->capture_id].forgone;
                                      return absl::OkStatus();
                                    }));
  if (broken.Count() > 0) {
    RETURN_IF_ERROR(database_.Write(broken, true, "removing notes that cannot be read"));
  }
  counts_ = std::move(counts);
  for (const std::string& sha256 : unreferred) RETURN_IF_ERROR(files_.Remove(sha256));
  for (const CaptureId& capture : gone) RETURN_IF_ERROR(DeleteLocked(capture));
  return absl::OkStatus();
}

// The lock makes the checks and the write one step, so that no content is deleted between them.
absl::StatusOr<ArtifactStore::Outcome> ArtifactStore::Refer(const ArtifactReference& reference) {
  const MutexLock lock(mutex_);
  if (!files_.Has(reference.sha256)) return Outcome::kMissing;
  // A reference to a deleted capture would never be deleted again.
  const auto record = database_.Get(Family::kCaptures, keys::Capture(reference.capture_id));
  if (absl::IsNotFound(record.status())) return Outcome::kUnknownCapture;
  RETURN_IF_ERROR(record.status());
  const std::string key = ReferenceKey(reference);
  const std::string forgone_key = ForgoneKey(reference);
  const std::string value = EncodeReference(reference);
  const auto known = database_.Get(Family::kArtifacts, key);
  const bool was_forgone = database_.Get(Family::kArtifacts, forgone_key).ok();
  // Agents repeat references after a reconnection; an equal one needs no write.
  if (known.ok() && *known == value && !was_forgone) return Outcome::kKept;
  Counts& counts = counts_[reference.capture_id];
  if (!known.ok() && counts.references >= limits::kArtifactsPerCaptureMax) {
    return Outcome::kTooMany;
  }
  rocksdb::WriteBatch batch;
  auto* const family = database_.family(Family::kArtifacts);
  std::vector<std::string> replaced;
  if (known.ok()) {
    const auto before = DecodeReference(key, *known);
    // The file at this place has changed. Its older content goes if nothing else refers to it.
    if (before.ok() && before->sha256 != reference.sha256) {
      batch.Delete(family, OwnerKey(before->sha256, key));
      replaced.push_back(before->sha256);
    }
  }
  if (was_forgone) batch.Delete(family, forgone_key);
  batch.Put(family, key, value);
  batch.Put(family, OwnerKey(reference.sha256, key), rocksdb::Slice());
  RETURN_IF_ERROR(database_.Write(batch, true, "storing a reference to an artifact"));
  if (!known.ok()) ++counts.references;
  // The counts follow the write, so a failed write leaves them right.
  if (was_forgone) --counts.forgone;
  // After the write: a crash in between leaves a content without a reference, which Open removes.
  RETURN_IF_ERROR(RemoveUnreferred(replaced));
  return Outcome::kKept;
}

absl::StatusOr<ArtifactStore::Outcome> ArtifactStore::Forgo(const ArtifactForgone& forgone) {
  const MutexLock lock(mutex_);
  const auto record = database_.Get(Family::kCaptures, keys::Capture(forgone.capture_id));
  if (absl::IsNotFound(record.status())) return Outcome::kUnknownCapture;
  RETURN_IF_ERROR(record.status());
  const std::string key = ForgoneKey(forgone);
  const std::string value = EncodeForgone(forgone);
  const auto known = database_.Get(Family::kArtifacts, key);
  if (known.ok() && *known == value) return Outcome::kKept;
  Counts& counts = counts_[forgone.capture_id];
  if (!known.ok() && counts.forgone >= limits::kArtifactsForgoneMax) return Outcome::kTooMany;
  rocksdb::WriteBatch batch;
  batch.Put(database_.family(Family::kArtifacts), key, value);
  RETURN_IF_ERROR(database_.Write(batch, true, "recording an artifact that is not stored"));
  if (!known.ok()) ++counts.forgone;
  return Outcome::kKept;
}

absl::StatusOr<std::vector<ArtifactForgone>> ArtifactStore::Forgone(
    const CaptureId& capture) const {
  std::vector<ArtifactForgone> all;
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, SkippedPrefix(capture),
                                    [&](std::string_view key, std::string_view value) {
                                      auto forgone = DecodeForgone(key, value);
                                      if (forgone.ok()) all.push_back(*std::move(forgone));
                                      return forgone.status();
                                    }));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.place.path(), a.agent_id, a.root) <
           std::tuple(b.place.path(), b.agent_id, b.root);
  });
  return all;
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
    return std::tuple(a.place.path(), a.agent_id, a.root) <
           std::tuple(b.place.path(), b.agent_id, b.root);
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
  ASSIGN_OR_RETURN(const std::vector<ArtifactForgone> forgone, Forgone(capture));
  totals.forgone = forgone.size();
  return totals;
}

// Takes time proportional to the number of references to each content.
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
  const MutexLock lock(mutex_);
  return DeleteLocked(capture);
}

// A reference that cannot be decoded is deleted without its owner entry; Open drops that.
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
  RETURN_IF_ERROR(database_.ForEach(Family::kArtifacts, SkippedPrefix(capture),
                                    [&](std::string_view key, std::string_view) {
                                      batch.Delete(family, ToSlice(key));
                                      return absl::OkStatus();
                                    }));
  counts_.erase(capture);
  if (batch.Count() == 0) return absl::OkStatus();
  RETURN_IF_ERROR(database_.Write(batch, true, "deleting a capture's references to artifacts"));
  return RemoveUnreferred({contents.begin(), contents.end()});
}

}  // namespace neurontrace
