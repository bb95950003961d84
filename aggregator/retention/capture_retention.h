// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/align/core/clock_maps.h"
#include "aggregator/retention/export_leases.h"
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

// A report about deletions.
struct Expired {
  CaptureId capture;
  std::string job;
  bool is_whole = false;  // the whole capture, else the oldest part of a running one
  uint64_t events = 0;    // of a running one
  uint64_t chunks = 0;    // of a whole one
  uint64_t bytes = 0;
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
    RetentionMetrics& metrics;
    // Returns by how much later something with this timestamp expires, because the clock was set
    // forward since. May be empty: not at all.
    std::function<uint64_t(uint64_t stamp_ns)> set_forward_since;
    // Returns the current time of the timescale that clock maps lead to.
    std::function<uint64_t()> reference_now_ns;
    // Returns maps from the REALTIME of the present hosts.
    std::function<absl::StatusOr<ClockMaps>()> clock_maps;
    // Makes everybody else forget this ended capture; returns false if it is still in use.
    std::function<bool(const CaptureId&)> let_go;
    // Called after a step that took this long, so that writers get their turn.
    std::function<void(uint64_t step_ns)> pause;
    // Returns true once the current work should end soon; the rest waits for the next start.
    std::function<bool()> is_ending;
    // Called for every deletion; for a running capture with sums, every few minutes and at its end.
    std::function<void(const Expired&)> on_expired;
  };
  // All functions but `set_forward_since` must be set. They are called on the thread of Run.
  explicit CaptureRetention(Deps deps) : deps_(std::move(deps)) {}
  ~CaptureRetention();  // reports what has not been reported yet
  CaptureRetention(const CaptureRetention&) = delete;
  CaptureRetention& operator=(const CaptureRetention&) = delete;

  // Handles everything that is due. Cheap if nothing is, because captures are remembered with their
  // next time. Called every second. Returns the first error; what failed is tried again by later
  // calls.
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
    uint64_t said_monotonic_ns = 0;
    size_t by_receipt = 0;  // number of its streams that are aged by arrival
  };
  class Pass;

  // Decides what is due for one capture; TrimCapture and DeleteCapture do it. All three fail with
  // the store's error.
  absl::Status Look(const CaptureId& id);
  absl::Status TrimCapture(const CaptureRecord& record, Running& running);
  absl::Status DeleteCapture(const CaptureRecord& record);
  // Reads the clock maps again if they are too old. Fails with the error of `clock_maps`; the
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
