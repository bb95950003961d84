// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "trace/capture_record.h"
#include "trace/ids.h"

namespace neurontrace {

class Database;

// The records of captures. Any thread.
class CaptureStore {
 public:
  explicit CaptureStore(Database& database) : database_(database) {}
  CaptureStore(const CaptureStore&) = delete;
  CaptureStore& operator=(const CaptureStore&) = delete;

  // Reads which captures there are; once, before anything else.
  absl::Status Load();

  // Writes or replaces. With `durable` it is on disk on return; without, after a moment.
  absl::Status Put(const CaptureRecord& record, bool durable);
  absl::StatusOr<CaptureRecord> Get(const CaptureId& id) const;
  // Oldest first.
  absl::StatusOr<std::vector<CaptureRecord>> List() const;
  std::vector<CaptureId> Ids() const;  // likewise
  size_t size() const;

  // Returns the one capture, of those that `counts` admits, whose id, as text, is or begins with
  // `text`, either case. Fails with INVALID_ARGUMENT if several do (it says which) or if it is no
  // such text, and with NOT_FOUND if none does. An empty `counts` admits all.
  absl::StatusOr<CaptureId> Find(std::string_view text,
                                 const std::function<bool(const CaptureId&)>& counts = {}) const;

  // Only the record: see ChunkStore::DeleteCapture for the rest.
  absl::Status Delete(const CaptureId& id);

 private:
  Database& database_;
  mutable std::mutex mutex_;
  std::set<CaptureId> ids_;  // guarded by mutex_
};

}  // namespace neurontrace
