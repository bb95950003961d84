// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/clock_finalizer.h"

#include <utility>

namespace neurontrace {

// Asks only about captures that are not known to be final. The set is rebuilt, so it cannot grow
// with deleted captures.
absl::Status ClockFinalizer::Run() {
  std::set<CaptureId> done;  // drops captures that were deleted
  absl::Status first_error;
  for (const CaptureId& id : store_.captures().Ids()) {
    if (done_.contains(id)) {
      done.insert(id);
      continue;
    }
    const auto record = store_.captures().Get(id);
    if (absl::IsNotFound(record.status())) continue;  // deleted at this moment
    const auto is_final = record.ok() ? book_.Finalize(*record) : record.status();
    if (is_final.ok() && *is_final) done.insert(id);
    first_error.Update(is_final.status());
    // The aggregator is ending: the rest would fail the same way.
    if (absl::IsCancelled(is_final.status())) break;
  }
  done_ = std::move(done);
  return first_error;
}

}  // namespace neurontrace
