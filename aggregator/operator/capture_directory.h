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

// Finds captures, running and stored, as a caller may see them. Any thread; each function waits for
// the coordinator's sequence or for the disk.
class CaptureDirectory {
 public:
  // Both must outlive this.
  CaptureDirectory(const SessionSequence& sessions, Store& store)
      : sessions_(sessions), store_(store) {}

  // Returns the capture that `text` names among those that the caller may see. Fails as
  // CaptureStore::Find does.
  absl::StatusOr<CaptureId> Find(const Caller& caller, const std::string& text) const;
  // Returns the current record, from the coordinator if it tracks the capture, otherwise from the
  // store.
  absl::StatusOr<CaptureRecord> Get(const CaptureId& id) const;

  // Returns a predicate for the captures that the caller may see, which reads one record for each
  // question. A caller with limits may not see one whose record cannot be read. The predicate
  // refers to this and to `caller`.
  CanSeeCapture SeenBy(const Caller& caller) const;
  // Returns the record without other people's workers and jobs.
  CaptureRecord AsSeenBy(const Caller& caller, CaptureRecord record) const;
  // Removes the ids of other people's captures from a message.
  void HideFrom(const Caller& caller, google::protobuf::Message& message) const;

 private:
  // Asked before the store, whose record of a running capture is older.
  const SessionSequence& sessions_;
  Store& store_;
};

}  // namespace neurontrace
