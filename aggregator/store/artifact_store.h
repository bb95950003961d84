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

// The artifacts of captures: contents in files beside the database, each once, and references to
// them in the database. A content goes with its last reference. Any thread.
class ArtifactStore {
 public:
  // The outcome of a reference.
  enum class Outcome : uint8_t {
    kKept,
    kMissing,  // its content is not here
    kUnknownCapture,
    kTooMany,
  };
  struct Totals {
    uint64_t references = 0;
    uint64_t contents = 0;  // different ones
    uint64_t bytes = 0;     // of these
    uint64_t forgone = 0;   // files that it should have and does not
  };

  // `directory` need not be there.
  ArtifactStore(Database& database, std::string directory);
  ~ArtifactStore();

  // Once, before anything else: removes contents without a reference and what belongs to captures
  // that are no more, which is what interruptions leave. References without a content become notes
  // of what is not kept.
  absl::Status Open();

  // Keeps the reference, durably, if its content is here. One at the same place of the same
  // capture, agent and root is replaced.
  absl::StatusOr<Outcome> Refer(const ArtifactReference& reference);
  // Notes, durably, that the capture will not have that file: kKept, kUnknownCapture or kTooMany.
  // A reference to the same place, kept later, takes the note away.
  absl::StatusOr<Outcome> Forgo(const ArtifactForgone& forgone);
  // In the order of their places.
  absl::StatusOr<std::vector<ArtifactForgone>> Forgone(const CaptureId& capture) const;
  // In the order of their places.
  absl::StatusOr<std::vector<ArtifactReference>> List(const CaptureId& capture) const;
  absl::StatusOr<Totals> Sum(const CaptureId& capture) const;
  // With the capture's record gone before.
  absl::Status DeleteCapture(const CaptureId& capture);

  ArtifactFiles& files() { return files_; }
  const ArtifactFiles& files() const { return files_; }

 private:
  struct Counts {
    size_t references = 0;
    size_t forgone = 0;
  };

  absl::Status RemoveUnreferred(const std::vector<std::string>& contents) NT_REQUIRES(mutex_);
  absl::Status DeleteLocked(const CaptureId& capture) NT_REQUIRES(mutex_);

  Database& database_;
  ArtifactFiles files_;
  Mutex mutex_;  // of references and of which contents they leave without one
  std::map<CaptureId, Counts> counts_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
