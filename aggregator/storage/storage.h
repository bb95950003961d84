// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/storage/store_metrics.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/durability.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/health/health_state.h"

namespace neurontrace {

// The store of a running aggregator with everything that guards it: its quotas, its metrics, and
// its health: whether it takes writes, and whether it has to be opened again. Complete after Open.
// Any thread, unless a method says otherwise.
class Storage {
 public:
  struct Options {
    std::string directory;  // of the store; created if it does not exist
    Durability durability = Durability::kSynced;
    CaptureQuotas quotas;
    uint64_t artifact_bytes = 0;  // the limit of all artifacts together
  };
  // All outlive it.
  struct Deps {
    prometheus::Registry& registry;
    HealthState& health;
    const Clock& clock;
    Random& random;
  };

  // Fails as Store::Open, and with FAILED_PRECONDITION if the directory cannot be created. Logs
  // what was repaired.
  static absl::StatusOr<std::unique_ptr<Storage>> Open(const Options& options, const Deps& deps);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Store& store() { return *store_; }
  StoreQuota& quota() { return quota_; }
  StoreMetrics& metrics() { return metrics_; }
  // Puts changed limits into force.
  void SetLimits(const CaptureQuotas& quotas, uint64_t artifact_bytes);

  // Takes the result of a write. A full disk passes; after other errors RocksDB refuses all writes
  // until the store is opened again.
  void RecordWrite(const absl::Status& status);
  // Called once a second on one thread, which waits for the disk: notices that the store has to be
  // opened again, and whether that can succeed now.
  void CheckHealth();
  // Returns true once only opening the store again can make it take writes: it refused all of them
  // for a while, or could not create a file of its log and the disk has room again. The program has
  // to end so that its supervisor restarts it. The log has said why.
  bool must_restart() const { return must_restart_; }

 private:
  Storage(std::unique_ptr<Store> store, const Options& options, const Deps& deps);

  HealthState& health_;
  const Clock& clock_;
  const std::unique_ptr<Store> store_;
  StoreQuota quota_;
  StoreMetrics metrics_;
  // Monotonic; 0: writes succeed, or the disk is full.
  std::atomic<uint64_t> failing_since_ns_ = 0;
  std::atomic<bool> must_restart_ = false;
};

}  // namespace neurontrace
