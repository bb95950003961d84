// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "aggregator/session/capture_quota.h"
#include "aggregator/store/store.h"
#include "lib/health/metric_builders.h"

namespace neurontrace {

// Exports losses, RocksDB's state and the room on the disk as Prometheus metrics
// (docs/operator/metrics.md). Works with an open store only.
class StoreMetrics {
 public:
  // The registry owns the metrics; registry and store must outlive this.
  StoreMetrics(prometheus::Registry& registry, Store& store, const CaptureQuotas& quotas);

  // Exports changed quotas. A quota of 0 means that only the disk limits it. Any thread.
  void SetQuotas(const CaptureQuotas& quotas);
  // Exports figures that are in memory. Called periodically on one thread.
  void Publish();
  // Exports figures for which the disk has to be asked. Called on one thread, which may be a
  // different one and has to tolerate waiting.
  void UpdateDiskMetrics();

 private:
  // Raises the counters to the sums of the store.
  void PublishLosses();

  Store& store_;
  // By place and reason of the loss.
  prometheus::Family<prometheus::Counter>& events_lost_;
  prometheus::Gauge& memtable_bytes_;
  prometheus::Gauge& blob_garbage_bytes_;
  // As RocksDB reports them; see DatabaseState.
  prometheus::Gauge& compaction_pending_bytes_;
  prometheus::Gauge& write_stalled_;
  prometheus::Counter& background_errors_;
  prometheus::Gauge& artifact_store_bytes_;
  // Set by UpdateDiskMetrics only.
  prometheus::Gauge& wal_bytes_;
  prometheus::Family<prometheus::Gauge>& quota_bytes_;
  // Has no value while the free space cannot be determined.
  OptionalGauge disk_free_;
};

}  // namespace neurontrace
