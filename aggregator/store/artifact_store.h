// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/artifact_files.h"
#include "lib/base/mutex.h"
#include "lib/trace/artifact.h"

namespace neurontrace {

class Database;

// Keeps the artifacts of captures: each content once, in a file beside the database, and references
// to it in family `artifacts` of the database. A content is deleted with its last reference.
//
// Any thread may call; calls that change references wait for each other and for the disk. Owns its
// files; the database must outlive it.
class ArtifactStore {
 public:
  // Result of Refer and Forgo if the store itself works.
  enum class Outcome : uint8_t {
    kKept,
    kMissing,         // its content is not stored; upload it first
    kUnknownCapture,  // never known, or deleted
    kTooMany,         // limits::kArtifactsPerCaptureMax or kArtifactsForgoneMax
  };
  // What one capture has.
  struct Totals {
    uint64_t references = 0;
    uint64_t contents = 0;  // distinct ones
    uint64_t bytes = 0;     // of the distinct contents
    uint64_t forgone = 0;   // notes of files that it does not have
  };

  // `directory` holds the contents; it is created with the first of them.
  ArtifactStore(Database& database, std::string directory);
  ~ArtifactStore();

  // Called once, before any other method. Repairs what an interruption left: removes contents
  // without a reference and entries of captures that no longer exist, and turns references without
  // a content into notes, so that their loss shows in the capture. Fails with the error of the
  // database or disk.
  absl::Status Open();

  // Stores a reference, synced, if its content is here. Replaces a reference of the same capture,
  // agent, root and path, and removes a note about that place.
  absl::StatusOr<Outcome> Refer(const ArtifactReference& reference);
  // Stores a note, synced, that the capture will not have a file. Returns kKept, kUnknownCapture or
  // kTooMany. A later reference to the same place removes the note.
  absl::StatusOr<Outcome> Forgo(const ArtifactForgone& forgone);
  // Lists the notes of a capture by path, then agent and root. Fails with DATA_LOSS if one cannot
  // be decoded.
  absl::StatusOr<std::vector<ArtifactForgone>> Forgone(const CaptureId& capture) const;
  // Lists the references of a capture in the same order, and fails in the same way.
  absl::StatusOr<std::vector<ArtifactReference>> List(const CaptureId& capture) const;
  // Sums the capture's references and notes; reads all of them.
  absl::StatusOr<Totals> Sum(const CaptureId& capture) const;
  // Deletes the references and notes of a capture and every content that none refers to any more.
  // The capture's record has to be deleted before, so that Refer cannot add another.
  absl::Status DeleteCapture(const CaptureId& capture);

  // The contents themselves, for uploads and downloads.
  ArtifactFiles& files() { return files_; }
  const ArtifactFiles& files() const { return files_; }

 private:
  // Entries of one capture, for its limits.
  struct Counts {
    size_t references = 0;
    size_t forgone = 0;
  };

  // Deletes those contents that have no owner entry.
  absl::Status RemoveUnreferred(const std::vector<std::string>& contents) NT_REQUIRES(mutex_);
  absl::Status DeleteLocked(const CaptureId& capture) NT_REQUIRES(mutex_);

  Database& database_;
  ArtifactFiles files_;
  Mutex mutex_;  // held from a look at references to the deletion of a content
  std::map<CaptureId, Counts> counts_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
