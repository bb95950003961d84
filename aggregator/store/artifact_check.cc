// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/artifact_check.h"

#include <map>
#include <set>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/artifact_files.h"
#include "base/sha256.h"
#include "base/status.h"

namespace neurontrace {
namespace {

// Of what is wrong with a content that a reference names; empty: nothing.
absl::StatusOr<std::string> FaultOf(const ArtifactFiles& files,
                                    const ArtifactReference& reference) {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  if (!files.Has(reference.sha256)) return "its content is not there";
  Sha256 sha;
  uint64_t offset = 0;
  while (true) {
    ASSIGN_OR_RETURN(const std::string piece, files.Read(reference.sha256, offset, kPieceBytes));
    if (piece.empty()) break;
    sha.Update(piece);
    offset += piece.size();
  }
  if (offset != reference.bytes) {
    return fmt::format("its content has {} bytes, not {}", offset, reference.bytes);
  }
  return sha.Finish() == reference.sha256 ? "" : "its content does not have its hash";
}

}  // namespace

absl::StatusOr<ArtifactCheck> CheckArtifacts(const Database& database,
                                             const std::string& directory) {
  ArtifactFiles files(directory, database.env());
  RETURN_IF_ERROR(files.Open());
  ArtifactCheck check;
  std::set<std::string> left = files.All();
  std::map<std::string, std::string> judged;  // hash to fault
  RETURN_IF_ERROR(database.ForEach(
      Family::kArtifacts, std::string(1, kReferenceKey),
      [&](std::string_view key, std::string_view value) {
        const auto reference = DecodeReference(key, value);
        if (!reference.ok()) {
          check.faults.emplace_back(CaptureId(), std::string(reference.status().message()));
          return absl::OkStatus();
        }
        left.erase(reference->sha256);
        auto known = judged.find(reference->sha256);
        if (known == judged.end()) {
          const auto fault = FaultOf(files, *reference);
          known = judged
                      .emplace(reference->sha256,
                               fault.ok() ? *fault : std::string(fault.status().message()))
                      .first;
          ++check.contents;
          check.bytes += reference->bytes;
        }
        if (known->second.empty()) return absl::OkStatus();
        check.faults.emplace_back(
            reference->capture_id,
            fmt::format("artifact {}: {}", reference->place.path(), known->second));
        return absl::OkStatus();
      }));
  if (!left.empty()) {
    check.notes.push_back(
        fmt::format("contents of artifacts that nothing refers to: {}; the aggregator removes them "
                    "when it starts",
                    left.size()));
  }
  return check;
}

}  // namespace neurontrace
