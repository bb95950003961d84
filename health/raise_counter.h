// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>

namespace neurontrace {

// Brings a counter, which can only be raised, to the sum that somebody else keeps.
inline void RaiseCounter(prometheus::Counter& counter, double sum) {
  const double more = sum - counter.Value();
  if (more > 0) counter.Increment(more);
}

}  // namespace neurontrace
