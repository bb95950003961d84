// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/session/capture_quota.h"
#include "aggregator/storage/store_metrics.h"
#include "aggregator/storage/store_quota.h"
#include "aggregator/store/durability.h"
#include "aggregator/store/store.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/random.h"
#include "lib/health/health_state.h"

namespace neurontrace {

// The store of a running aggregator with everything that guards it: quotas, metrics and health,
// which is whether it accepts writes and whether it has to be opened again. Owns the store. Any
// thread, unless a method says otherwise.
class Storage {
 public:
  // Options of the store that the configuration sets.
  struct Options {
    std::string directory;  // of the store; created if it does not exist
    Durability durability = Durability::kSynced;
    CaptureQuotas quotas;
    uint64_t artifact_bytes = 0;  // limit of all artifacts together
  };
  // All of them must outlive the storage.
  struct Deps {
    prometheus::Registry& registry;
    HealthState& health;
    const Clock& clock;
    Random& random;
  };

  // Opens the store and declares its health conditions. Fails as Store::Open does, and with
  // FAILED_PRECONDITION if the directory cannot be created. Logs what was repaired.
  static absl::StatusOr<std::unique_ptr<Storage>> Open(const Options& options, const Deps& deps);
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  // The three parts, which live as long as this.
  Store& store() { return *store_; }
  StoreQuota& quota() { return quota_; }
  StoreMetrics& metrics() { return metrics_; }
  // Applies changed limits to what is stored from now on.
  void SetLimits(const CaptureQuotas& quotas, uint64_t artifact_bytes);

  // What was written. A small record may still fit where chunks no longer do.
  enum class Written { kChunks, kRecord };
  // Takes the result of a write to the store and updates readiness. A full disk passes by itself;
  // after other errors RocksDB may refuse all writes until the store is opened again. A record that
  // was written does not end a failure of chunks for lack of room.
  void RecordWrite(Written what, const absl::Status& status);
  // Why the store refuses writes at present. A plain value.
  struct WriteProblem {
    std::string text;      // what failed, and what to do about it
    bool is_full = false;  // for lack of room: passes by itself once there is some
    uint64_t since_realtime_ns = 0;
    std::optional<uint64_t> free_bytes;  // on the store's disk; nullopt: cannot be determined
  };
  // Returns the problem while it lasts. Asks the disk only then.
  std::optional<WriteProblem> write_problem() const;
  // Called once a second on one thread, which it may keep waiting for the disk. Notices that the
  // store has to be opened again, and whether opening can succeed now. Ends a lack of room that no
  // write has met for a while if the disk takes a file again.
  void CheckHealth();
  // Returns true once only opening the store again can make it accept writes, and never false after
  // that. Either it refused all of them for a while, or it could not create a log file and the disk
  // has room again. The program then exits, so that its supervisor restarts it; the log has the
  // reason. Any thread.
  bool must_restart() const { return must_restart_; }

 private:
  Storage(std::unique_ptr<Store> store, const Options& options, const Deps& deps);

  HealthState& health_;
  const Clock& clock_;
  // Before its users, which are destroyed first.
  const std::unique_ptr<Store> store_;
  StoreQuota quota_;
  StoreMetrics metrics_;
  // A lack of room that no write has met for kFullPatienceNs is over if the disk takes a file.
  void EndFullIfRoom();

  // The failure that lasts.
  struct Failure {
    Written what = Written::kChunks;
    absl::Status status;
    uint64_t since_realtime_ns = 0;
    uint64_t last_monotonic_ns = 0;  // of the last write that failed
    uint64_t failing_since_ns = 0;   // monotonic; 0 while it is a lack of room
  };
  mutable Mutex mutex_;
  std::optional<Failure> failure_ NT_GUARDED_BY(mutex_);  // nullopt: writes succeed
  std::atomic<bool> must_restart_ = false;
};

}  // namespace neurontrace
