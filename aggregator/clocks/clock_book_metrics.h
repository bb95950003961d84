// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

namespace neurontrace {

// What becomes of the models of captures' clocks; docs/operations.md has the words. The registry
// owns them. Any thread.
struct ClockBookMetrics {
  explicit ClockBookMetrics(prometheus::Registry& registry);

  prometheus::Counter& fits;  // of captures, running and ended
  prometheus::Counter& fit_seconds;
  prometheus::Counter& versions_stored;
  prometheus::Counter& versions_not_stored;
};

}  // namespace neurontrace
