// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "aggregator/session/capture_observer.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/health/metric_builders.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/worker_info.h"
#include "lib/wire/security_watch.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// What the aggregator as a whole reports about itself; docs/operator/metrics.md describes them. The
// registry owns them. Any thread.
struct AggregatorMetrics : CaptureObserver {
  explicit AggregatorMetrics(prometheus::Registry& registry);

  prometheus::Gauge& agents_connected;
  prometheus::Gauge& workers;
  prometheus::Gauge& captures_running;
  prometheus::Gauge& captures_stored;
  prometheus::Gauge& store_bytes;
  prometheus::Gauge& chunks_damaged;
  prometheus::Gauge& streams_live;
  prometheus::Counter& exports;
  prometheus::Counter& exports_refused;
  prometheus::Counter& exports_unread;
  prometheus::Gauge& exports_running;
  prometheus::Counter& watches_refused;
  prometheus::Counter& watches_unread;
  prometheus::Counter& audit_failures;
  prometheus::Gauge& secret_files_open;
  prometheus::Counter& handshakes_failed;
  prometheus::Counter& connections_refused_descriptors;
  prometheus::Counter& connections_refused_address;
  prometheus::Counter& captures_begun;
  prometheus::Counter& captures_not_begun;
  prometheus::Histogram& arm_seconds;
  prometheus::Histogram& begin_lead_seconds;

  // Nothing: the gauge is not there. One thread.
  void SetCanaryAge(std::optional<uint64_t> age_ns);
  // In seconds since 1970; the same. One thread.
  void SetSecurityEnds(const SecurityEnds& ends);
  // Where there is a file of access. One thread.
  void SetAccessFileGood(bool is_good);
  // One thread.
  void OnCaptureArmed(const ArmingOutcome& outcome) override;
  void OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) override;

 private:
  OptionalGauge canary_age_;
  OptionalGauge certificate_expiry_;
  OptionalGauge authority_expiry_;
  OptionalGauge access_file_good_;
  prometheus::Family<prometheus::Counter>& workers_refused_;
};

// The outcome of captures that were asked for, as Prometheus metrics. The registry owns them. Any
// thread.
class CaptureMetrics {
 public:
  explicit CaptureMetrics(prometheus::Registry& registry);

  // Once for each capture, when it ends.
  void CountEnded(CaptureState state);
  // A command that did not start one, by the kind of its error; OK counts as nothing.
  void CountAnswer(const absl::Status& status);

 private:
  prometheus::Family<prometheus::Counter>& ended_;
  prometheus::Family<prometheus::Counter>& refused_;
};

// How well the clock of each instance is known, as a Prometheus gauge by instance; one that is not
// known is not there. At most limits::kClockBoundSeriesMax have one: beyond that the best known are
// left out, and counted, so that what is wide is seen. One thread.
class ClockBoundMetrics {
 public:
  // The registry owns the metrics.
  explicit ClockBoundMetrics(prometheus::Registry& registry);

  // Bounds in nanoseconds, by instance.
  void Publish(const std::map<std::string, uint64_t>& bounds);

 private:
  GaugesByLabel<std::string> bounds_;
  prometheus::Gauge& left_out_;
};

// How long exports take, how much they write and why they fail, as Prometheus metrics. The registry
// owns them. Any thread.
class ExportMetrics {
 public:
  explicit ExportMetrics(prometheus::Registry& registry);

  // One that ended with this error. `delivers`: to a destination that may be written to, of a
  // capture that there is something of; what the world refuses then is the destination's.
  void CountFailed(const absl::Status& status, bool delivers);

  // One export, from its making to its end; one thread. Both references outlive it.
  class Meter {
   public:
    Meter(ExportMetrics& metrics, const Clock& clock, const v1::ExportRequest& request);
    ~Meter();
    Meter(const Meter&) = delete;
    Meter& operator=(const Meter&) = delete;

    // Each reply of it, in order: progress and the end say how much is written.
    void Look(const v1::ExportReply& reply);

   private:
    ExportMetrics& metrics_;
    const Clock& clock_;
    const uint64_t begun_ns_;
    prometheus::Counter& bytes_;
    uint64_t written_ = 0;
  };

 private:
  prometheus::Counter& BytesOf(const std::string& format);

  prometheus::Histogram& seconds_;
  prometheus::Family<prometheus::Counter>& bytes_;
  prometheus::Family<prometheus::Counter>& failed_;
};

// What the store has lost, how RocksDB does, and what room there is, as Prometheus metrics.
class StoreMetrics {
 public:
  // The registry owns the metrics; the store outlives this.
  StoreMetrics(prometheus::Registry& registry, Store& store, const CaptureQuotas& quotas);

  // Any thread: how much may be stored from now on.
  void SetQuotas(const CaptureQuotas& quotas);
  // Numbers that are in memory. One thread.
  void Publish();
  // What the disk has to be asked for. One thread, which may be another one.
  void LookAtDisk();

 private:
  void PublishLosses();

  Store& store_;
  prometheus::Family<prometheus::Counter>& events_lost_;
  prometheus::Gauge& memtable_bytes_;
  prometheus::Gauge& blob_garbage_bytes_;
  prometheus::Gauge& compaction_pending_bytes_;
  prometheus::Gauge& write_stalled_;
  prometheus::Counter& background_errors_;
  prometheus::Gauge& artifact_store_bytes_;
  prometheus::Gauge& wal_bytes_;
  prometheus::Family<prometheus::Gauge>& quota_bytes_;
  OptionalGauge disk_free_;
};

}  // namespace neurontrace
