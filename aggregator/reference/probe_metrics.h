// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

namespace neurontrace {

// What the responder counts; docs/operations.md has the words. The registry owns them. Any thread.
struct ProbeMetrics {
  explicit ProbeMetrics(prometheus::Registry& registry);

  prometheus::Counter& answered;
  prometheus::Counter& without_kernel_stamp;
  prometheus::Counter& refused_malformed;
  prometheus::Counter& refused_unknown_key;
  prometheus::Counter& refused_forged;
  prometheus::Counter& refused_replayed;
  prometheus::Counter& refused_too_many;
  prometheus::Counter& send_errors;
};

}  // namespace neurontrace
