// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/retention/changed_retentions.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/retention/retention_environment.h"
#include "aggregator/retention/stream_age.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/store.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Metrics of retention (docs/operator/metrics.md). The registry owns them. Any thread.
struct RetentionMetrics {
  // Creates all metrics, so that each is exported with 0 from the start.
  explicit RetentionMetrics(prometheus::Registry& registry);

  // What continuous captures have lost to their retention.
  prometheus::Counter& events_expired;
  prometheus::Counter& bytes_expired;
  // Steps of deletion, and the seconds that they took in all.
  prometheus::Counter& trims;
  prometheus::Counter& trim_seconds;
  prometheus::Counter& captures_deleted;
  prometheus::Counter& errors;
  // The longest step so far: writers wait for that long.
  prometheus::Gauge& step_seconds_max;
  // Streams at present with implausible timestamps.
  prometheus::Gauge& streams_by_receipt;
};

// Keeps captures within the age and size of their specs: deletes the oldest chunks of running
// continuous captures, and whole captures whose time after their end is over. Has no thread of its
// own; one thread at a time. Why chunk by chunk: docs/decisions/0018.
class CaptureRetention {
 public:
  // A capture is trimmed every eighth of its retention, within these limits.
  static constexpr uint64_t kPassIntervalMinNs = 1'000'000'000;
  static constexpr uint64_t kPassIntervalMaxNs = 15'000'000'000;
  // How long maps of hosts' clocks are used before they are read again.
  static constexpr uint64_t kMapsMaxAgeNs = 60'000'000'000;

  // All of them must outlive this.
  struct Deps {
    Store& store;
    const Clock& clock;
    ExportLeases& leases;
    ChangedRetentions& changes;
    RetentionMetrics& metrics;
    RetentionEnvironment& environment;
  };
  explicit CaptureRetention(const Deps& deps) : deps_(deps) {}
  ~CaptureRetention();  // reports what has not been reported yet
  CaptureRetention(const CaptureRetention&) = delete;
  CaptureRetention& operator=(const CaptureRetention&) = delete;

  // Handles everything that is due, and what `changes` has at once. Cheap if nothing is, because
  // captures are remembered with their next time. Called every second. Returns the first error;
  // what failed is tried again by later calls.
  absl::Status Run();

 private:
  // A continuous capture that is running.
  struct Running {
    // When the next pass is due.
    uint64_t due_monotonic_ns = 0;
    std::map<uint32_t, StreamAge> ages;
    uint64_t events_expired = 0;  // since the last report
    uint64_t bytes_expired = 0;
    // When its deletions were last reported.
    uint64_t reported_monotonic_ns = 0;
    size_t by_receipt = 0;  // number of its streams that are aged by arrival
  };
  class Pass;

  // Makes captures due whose retention was changed.
  void ApplyChanges();
  // Decides what is due for one capture; TrimCapture and DeleteCapture do it. All three fail with
  // the store's error.
  absl::Status Inspect(const CaptureId& id);
  absl::Status TrimCapture(const CaptureRecord& record, Running& running);
  absl::Status DeleteCapture(const CaptureRecord& record);
  // Reads the clock maps again if they are too old. Fails with the error of the environment; the
  // earlier maps then stay in use.
  absl::Status RefreshMaps();
  // Reports what has expired since the last report; nothing if there is nothing.
  void LogExpiredTotals(const CaptureRecord& record, Running& running) const;
  RetentionTime Now() const;

  const Deps deps_;
  std::map<CaptureId, Running> running_;
  std::map<CaptureId, uint64_t> delete_at_;  // realtime; UINT64_MAX: never
  ClockMaps maps_;
  uint64_t maps_monotonic_ns_ = 0;  // when they were read; 0: never
};

}  // namespace neurontrace
