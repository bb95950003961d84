// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"
#include "aggregator/access/role.h"
#include "aggregator/access/visibility.h"
#include "aggregator/operator/session_sequence.h"
#include "aggregator/store/store.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Finds captures, running and stored ones, as a caller may see them. Any thread; each function
// waits for the coordinator's sequence or for the disk.
class CaptureDirectory {
 public:
  // Both outlive this.
  CaptureDirectory(const SessionSequence& sessions, Store& store)
      : sessions_(sessions), store_(store) {}

  // Returns the capture that `text` names among those that the caller may see. Fails with the
  // errors of CaptureStore::Find.
  absl::StatusOr<CaptureId> Find(const Caller& caller, const std::string& text) const;
  // Returns the record as it is now, of a capture that runs or has ended.
  absl::StatusOr<CaptureRecord> Get(const CaptureId& id) const;

  // Returns a function that tells whether the caller may see a capture; a caller with limits does
  // not see one whose record cannot be read. The function refers to this and to `caller`.
  MaySeeCapture SeenBy(const Caller& caller) const;
  // Returns the record without the workers and jobs of other people.
  CaptureRecord AsSeenBy(const Caller& caller, CaptureRecord record) const;
  // Removes the ids of other people's captures from a message.
  void HideFrom(const Caller& caller, google::protobuf::Message& message) const;

 private:
  const SessionSequence& sessions_;
  Store& store_;
};

}  // namespace neurontrace
