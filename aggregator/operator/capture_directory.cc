// SPDX-License-Identifier: Apache-2.0
#include "aggregator/operator/capture_directory.h"

#include <optional>
#include <utility>

#include "aggregator/operator/hidden_captures.h"
#include "lib/base/status.h"

namespace neurontrace {

// Reads one record for each id, unless the caller has no limits.
CanSeeCapture CaptureDirectory::SeenBy(const Caller& caller) const {
  return [this, &caller](const CaptureId& id) {
    if (!caller.is_limited()) return true;
    const auto record = Get(id);
    return record.ok() && CheckOwner(caller, record->spec).ok();
  };
}

// The predicate is part of the search: an ambiguous prefix must not reveal ids of other people's
// captures.
absl::StatusOr<CaptureId> CaptureDirectory::Find(const Caller& caller,
                                                 const std::string& text) const {
  if (!caller.is_limited()) return store_.captures().Find(text);
  return store_.captures().Find(text, SeenBy(caller));
}

CaptureRecord CaptureDirectory::AsSeenBy(const Caller& caller, CaptureRecord record) const {
  if (!caller.is_limited()) return record;
  HideInvisible(
      [&](const WorkerIdentity& identity) {
        const auto worker = store_.inventory().Worker(identity);
        return worker.ok() && CanSee(caller, worker->info);
      },
      SeenBy(caller), record);
  return record;
}

// Fails with NOT_FOUND if there is no such capture, or with the error of PostAndWait.
absl::StatusOr<CaptureRecord> CaptureDirectory::Get(const CaptureId& id) const {
  // The stored record of a running capture lacks what has changed in the last second.
  ASSIGN_OR_RETURN(
      const std::optional<CaptureRecord> running,
      sessions_.Run([&](const Coordinator& coordinator) -> std::optional<CaptureRecord> {
        const CaptureRecord* const record = coordinator.Find(id);
        return record == nullptr ? std::nullopt : std::optional(*record);
      }));
  if (running) return *running;
  return store_.captures().Get(id);
}

void CaptureDirectory::HideFrom(const Caller& caller, google::protobuf::Message& message) const {
  if (caller.is_limited()) HideCapturesIn(SeenBy(caller), message);
}

}  // namespace neurontrace
