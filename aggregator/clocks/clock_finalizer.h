// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "absl/status/status.h"
#include "aggregator/clocks/clock_model_cache.h"
#include "aggregator/store/store.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Makes sure that every ended capture gets final models of its clocks even if nobody asks for them.
// One thread at a time.
class ClockFinalizer {
 public:
  // Both must outlive this.
  ClockFinalizer(const Store& store, ClockModelCache& book) : store_(store), book_(book) {}

  // Handles all captures that are not known to be done. Returns the first error; captures that
  // failed are tried again by the next call.
  absl::Status Run();

 private:
  const Store& store_;
  ClockModelCache& book_;
  std::set<CaptureId> done_;  // with a final version; without deleted ones
};

}  // namespace neurontrace
