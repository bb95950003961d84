// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store_metrics.h"

#include <cstdint>
#include <string>

#include "health/raise_counter.h"
#include "trace/loss_table.h"

namespace neurontrace {
namespace {

prometheus::Family<prometheus::Gauge>& StoreGauges(prometheus::Registry& registry, const char* name,
                                                   const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

prometheus::Gauge& StoreGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return StoreGauges(registry, name, help).Add({});
}

}  // namespace

StoreMetrics::StoreMetrics(prometheus::Registry& registry, Store& store,
                           const CaptureQuotas& quotas)
    : store_(store),
      events_lost_(prometheus::BuildCounter()
                       .Name("neurontrace_aggregator_events_lost_total")
                       .Help("Events that stored chunks, or the store itself, say are lost, by "
                             "place and reason")
                       .Register(registry)),
      memtable_bytes_(StoreGauge(registry, "neurontrace_aggregator_store_memtable_bytes",
                                 "Bytes of RocksDB's write buffers")),
      blob_garbage_bytes_(StoreGauge(registry, "neurontrace_aggregator_store_blob_garbage_bytes",
                                     "Bytes of blob files that nothing refers to any more")),
      compaction_pending_bytes_(
          StoreGauge(registry, "neurontrace_aggregator_store_compaction_pending_bytes",
                     "Bytes that compaction has still to rewrite, as RocksDB estimates it")),
      write_stalled_(StoreGauge(registry, "neurontrace_aggregator_store_write_stalled",
                                "1 while RocksDB slows writers down or stops them")),
      background_errors_(prometheus::BuildCounter()
                             .Name("neurontrace_aggregator_store_background_errors_total")
                             .Help("Flushes and compactions of RocksDB that failed")
                             .Register(registry)
                             .Add({})),
      artifact_store_bytes_(StoreGauge(registry, "neurontrace_aggregator_artifact_store_bytes",
                                       "Bytes of the artifacts that are kept")),
      wal_bytes_(StoreGauge(registry, "neurontrace_aggregator_store_wal_bytes",
                            "Bytes of the files of RocksDB's write-ahead log")),
      quota_bytes_(StoreGauges(registry, "neurontrace_aggregator_quota_bytes",
                               "How much may be stored; 0: as much as there is room for")),
      disk_free_{StoreGauges(registry, "neurontrace_aggregator_disk_free_bytes",
                             "What the store's disk has left for the aggregator")} {
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

void StoreMetrics::PublishLosses() {
  store_.chunks().losses().ForEach(
      LossPlace::kRetention, [this](LossPlace place, LossReason reason, uint64_t events) {
        RaiseCounter(events_lost_.Add({{"place", std::string(ToString(place))},
                                       {"reason", std::string(ToString(reason))}}),
                     static_cast<double>(events));
      });
}

void StoreMetrics::LookAtDisk() {
  if (const auto bytes = store_.wal_bytes(); bytes.ok()) {
    wal_bytes_.Set(static_cast<double>(*bytes));
  }
  const auto free_bytes = store_.free_bytes();
  disk_free_.Set(free_bytes.ok() ? std::optional(static_cast<double>(*free_bytes)) : std::nullopt);
}

}  // namespace neurontrace
