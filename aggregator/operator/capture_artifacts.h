// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/role.h"
#include "aggregator/store/artifact_store.h"
#include "lib/trace/artifact.h"
#include "lib/trace/capture_record.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Sends one part of an artifact. Returns false once nobody receives them any more.
using ArtifactWriter = std::function<bool(const v1::GetArtifactReply&)>;

// Shows operators the artifacts of captures. A caller who may see only some jobs is shown the files
// of processes that took part in the capture, and a count of the others: an agent collects what
// changed in its directories, whoever wrote it. Any thread; waits for the disk.
class CaptureArtifacts {
 public:
  // `store` must outlive this.
  explicit CaptureArtifacts(const ArtifactStore& store) : store_(store) {}

  // Lists the artifacts of a capture, up to limits::kArtifactsListedMax. `record` is the capture as
  // the caller may see it. Fails as ArtifactStore::List does.
  absl::StatusOr<v1::ListArtifactsReply> List(const Caller& caller,
                                              const CaptureRecord& record) const;
  // Returns the first artifact with this content, or NOT_FOUND if the caller has none.
  absl::StatusOr<ArtifactReference> Find(const Caller& caller, const CaptureRecord& record,
                                         const std::string& sha256_hex) const;
  // Sends the artifact and its bytes. Fails with CANCELLED if `write` returns false, with NOT_FOUND
  // if the content was deleted, and with DATA_LOSS, after the bytes, if they do not have its hash.
  absl::Status Read(const ArtifactReference& artifact, const ArtifactWriter& write) const;

 private:
  const ArtifactStore& store_;
};

}  // namespace neurontrace
