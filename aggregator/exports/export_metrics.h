// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// Measures how long exports take, how much they write and why they fail, as Prometheus metrics. The
// registry owns the metrics and must outlive this. May be used on any thread.
class ExportMetrics {
 public:
  // Registers all metrics with their labels at once. Called once for a registry.
  explicit ExportMetrics(prometheus::Registry& registry);

  // docs/operator/metrics.md describes each metric.
  prometheus::Counter& begun;
  // Refused because too many were running.
  prometheus::Counter& refused;
  // Cancelled because the client stopped reading.
  prometheus::Counter& unread;
  // Changed by the owner at the begin and the end of each export.
  prometheus::Gauge& running;

  // Counts an export that ended with this error, under a reason derived from its code. `delivers`
  // says that it could reach its destination, so that codes of the outside world are the
  // destination's fault rather than the request's.
  void CountFailed(const absl::Status& status, bool delivers);

  // Measures one export from its construction to its destruction. Used by one thread at a time;
  // both references must outlive it.
  class Meter {
   public:
    Meter(ExportMetrics& metrics, const Clock& clock, const v1::ExportRequest& request);
    ~Meter();
    Meter(const Meter&) = delete;
    Meter& operator=(const Meter&) = delete;

    // Counts the bytes that progress and `done` report. Must be called for each reply in order.
    void Observe(const v1::ExportReply& reply);

   private:
    ExportMetrics& metrics_;
    const Clock& clock_;
    // By the monotonic clock, in nanoseconds.
    const uint64_t begun_ns_;
    prometheus::Counter& bytes_;
    // The bytes that bytes_ has counted.
    uint64_t written_ = 0;
  };

 private:
  // Returns the counter of a format, or of "several".
  prometheus::Counter& BytesOf(const std::string& format);

  // Seconds from begin to end; bytes_ is by format, failed_ by reason.
  prometheus::Histogram& seconds_;
  prometheus::Family<prometheus::Counter>& bytes_;
  prometheus::Family<prometheus::Counter>& failed_;
};

}  // namespace neurontrace
