// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/store_metrics.h"

#include <optional>

#include "lib/trace/loss_table.h"

namespace neurontrace {

StoreMetrics::StoreMetrics(prometheus::Registry& registry, Store& store,
                           const CaptureQuotas& quotas)
    : store_(store),
      events_lost_(MakeCounterFamily(
          registry, "neurontrace_aggregator_events_lost_total",
          "Lost events reported by stored chunks or the store, by place and reason")),
      memtable_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_memtable_bytes",
                                "Bytes of RocksDB's write buffers")),
      blob_garbage_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_blob_garbage_bytes",
                                    "Bytes of unreferenced data in blob files")),
      compaction_pending_bytes_(
          MakeGauge(registry, "neurontrace_aggregator_store_compaction_pending_bytes",
                    "Bytes that compaction still has to rewrite, as estimated by RocksDB")),
      write_stalled_(MakeGauge(registry, "neurontrace_aggregator_store_write_stalled",
                               "1 while RocksDB slows writers down or stops them")),
      background_errors_(MakeCounter(registry,
                                     "neurontrace_aggregator_store_background_errors_total",
                                     "Flushes and compactions of RocksDB that failed")),
      artifact_store_bytes_(MakeGauge(registry, "neurontrace_aggregator_artifact_store_bytes",
                                      "Bytes of stored artifacts")),
      wal_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_wal_bytes",
                           "Bytes of the files of RocksDB's write-ahead log")),
      quota_bytes_(MakeGaugeFamily(registry, "neurontrace_aggregator_quota_bytes",
                                   "Quota in bytes; 0: limited only by disk space")),
      disk_free_{MakeGaugeFamily(registry, "neurontrace_aggregator_disk_free_bytes",
                                 "Free bytes of the store's disk that the aggregator may use")} {
  SetQuotas(quotas);
  PublishLosses();
}

void StoreMetrics::SetQuotas(const CaptureQuotas& quotas) {
  quota_bytes_.Add({{"quota", "capture"}}).Set(static_cast<double>(quotas.capture_bytes));
  quota_bytes_.Add({{"quota", "job"}}).Set(static_cast<double>(quotas.job_bytes));
  quota_bytes_.Add({{"quota", "store"}}).Set(static_cast<double>(quotas.store_bytes));
}

void StoreMetrics::Publish() {
  PublishLosses();
  const DatabaseState state = store_.database_state();
  memtable_bytes_.Set(static_cast<double>(state.memtable_bytes));
  blob_garbage_bytes_.Set(static_cast<double>(state.blob_garbage_bytes));
  compaction_pending_bytes_.Set(static_cast<double>(state.compaction_pending_bytes));
  write_stalled_.Set(state.write_stalled ? 1 : 0);
  RaiseCounter(background_errors_, static_cast<double>(state.background_errors));
  artifact_store_bytes_.Set(static_cast<double>(store_.artifacts().files().bytes()));
}

// Losses are summed by the store itself; the counters only follow the sums.
void StoreMetrics::PublishLosses() {
  RaiseLosses(events_lost_, store_.chunks().losses(), LossPlace::kRetention);
}

// A size that cannot be read leaves the last value, and unknown free space removes its gauge,
// because a wrong value could hide a full disk.
void StoreMetrics::UpdateDiskMetrics() {
  if (const auto bytes = store_.wal_bytes(); bytes.ok()) {
    wal_bytes_.Set(static_cast<double>(*bytes));
  }
  const auto free_bytes = store_.free_bytes();
  disk_free_.Set(free_bytes.ok() ? std::optional(static_cast<double>(*free_bytes)) : std::nullopt);
}

}  // namespace neurontrace
