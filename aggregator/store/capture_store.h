// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

class Database;

// Stores the records of captures and knows their ids in memory. Any thread; the database must
// outlive it.
class CaptureStore {
 public:
  explicit CaptureStore(Database& database) : database_(database) {}
  CaptureStore(const CaptureStore&) = delete;
  CaptureStore& operator=(const CaptureStore&) = delete;

  // Called once, before any other method. Reads the ids of all captures.
  absl::Status Load();

  // Writes or replaces a record. With `durable` it is synced on return, otherwise it survives the
  // end of the process but not of the machine.
  absl::Status Put(const CaptureRecord& record, bool durable);
  // Fails with NOT_FOUND if there is no such capture, with DATA_LOSS if its record is damaged.
  absl::StatusOr<CaptureRecord> Get(const CaptureId& id) const;
  // Returns all records, oldest first; fails if one cannot be decoded.
  absl::StatusOr<std::vector<CaptureRecord>> List() const;
  std::vector<CaptureId> Ids() const;  // oldest first; from memory
  size_t size() const;

  // Returns the one capture whose id, as text, is or begins with `text`, in either case. `counts`
  // selects which captures are considered, so that a caller learns nothing of others; empty admits
  // all. Fails with INVALID_ARGUMENT, naming some, if several match, or if `text` cannot be the
  // beginning of an id, and with NOT_FOUND if none matches.
  absl::StatusOr<CaptureId> Find(std::string_view text,
                                 const std::function<bool(const CaptureId&)>& counts = {}) const;

  // Deletes only the record, synced; Store::DeleteCapture deletes the rest.
  absl::Status Delete(const CaptureId& id);

 private:
  Database& database_;
  mutable Mutex mutex_;
  std::set<CaptureId> ids_ NT_GUARDED_BY(mutex_);
};

}  // namespace neurontrace
