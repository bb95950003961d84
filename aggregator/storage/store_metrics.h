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
