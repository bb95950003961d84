// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>

#include "aggregator/web/browser_sessions.h"
#include "lib/web/web_server.h"

namespace neurontrace {

// Metrics of the page's port (docs/operator/metrics.md). The registry owns them. One thread.
class PageMetrics {
 public:
  // Sums since the start, from which the metrics are made.
  struct Sums {
    const WebCounters& server;
    BrowserSessions::Counts sessions;
    uint64_t throttled = 0;  // tries of tokens that were refused
    uint64_t foreign = 0;    // requests with a foreign host name, or of another site
    uint64_t unknown = 0;    // requests without valid credentials
  };
  explicit PageMetrics(prometheus::Registry& registry);
  void Publish(const Sums& sums);

 private:
  prometheus::Gauge& connections_;
  prometheus::Counter& accepted_;
  prometheus::Counter& crowded_;
  prometheus::Counter& failed_handshakes_;
  prometheus::Counter& requests_;
  prometheus::Counter& malformed_;
  prometheus::Counter& foreign_;
  prometheus::Counter& unknown_;
  prometheus::Counter& throttled_;
  prometheus::Counter& received_bytes_;
  prometheus::Counter& sent_bytes_;
  prometheus::Counter& answer_seconds_;
  prometheus::Gauge& sessions_;
  prometheus::Counter& begun_;
  prometheus::Counter& crowded_sessions_;
  prometheus::Counter& signed_out_;
  prometheus::Counter& expired_;
  prometheus::Counter& displaced_;
};

}  // namespace neurontrace
