// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "absl/status/status.h"
#include "aggregator/clocks/clock_book.h"
#include "aggregator/store/store.h"
#include "trace/ids.h"

namespace neurontrace {

// Sees to it that every capture that has ended gets the final models of its clocks, also if nobody
// asks for them. One thread at a time.
class ClockFinalizer {
 public:
  // Both outlive this.
  ClockFinalizer(const Store& store, ClockBook& book) : store_(store), book_(book) {}

  // Looks at all captures that are not known to be done. The first error; what it left is looked at
  // the next time.
  absl::Status Run();

 private:
  const Store& store_;
  ClockBook& book_;
  std::set<CaptureId> done_;
};

}  // namespace neurontrace
