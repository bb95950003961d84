// SPDX-License-Identifier: Apache-2.0
#include "aggregator/storage/storage.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "aggregator/clocks/clock_fit_record.h"
#include "aggregator/ingest/chunk_admission.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// How long writes may fail for another reason than a full disk before the program exits.
constexpr uint64_t kStorePatienceNs = 10'000'000'000;
// After how long without a failed write a full disk is tested. Agents that have chunks to store
// send them again each second, so within this time one of them would have failed.
constexpr uint64_t kFullPatienceNs = 10'000'000'000;

// The names of the health conditions, as /healthz and /readyz show them.
constexpr char kStoreCondition[] = "store";
constexpr char kStoreFilesCondition[] = "store files";

// Opens the store with the functions by which it understands chunks and clock models; the store's
// own folder may not depend on those that define them.
absl::StatusOr<std::unique_ptr<Store>> OpenStore(const Storage::Options& options, Random& random) {
  const std::string& path = options.directory;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    const bool is_file = std::filesystem::exists(path) && !std::filesystem::is_directory(path);
    return FailedPrecondition("cannot create the store's directory {}: {}", path,
                              is_file ? "it is a file; choose a directory" : error.message());
  }
  ChunkAdmission door;  // only used while Open repairs
  auto store = Store::Open(path, {.examine = ExamineThrough(door),
                                  .are_clocks_final =
                                      [](std::string_view header) {
                                        const auto fit = DecodeClockFitRecord(header);
                                        return fit.ok() && fit->is_final;
                                      },
                                  .aggregator_id = fmt::format("agg-{:016x}", random.Next64()),
                                  .durability = options.durability});
  if (store.ok()) {
    for (const std::string& note : (*store)->notes()) SPDLOG_WARN("store {}: {}", path, note);
  }
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Storage>> Storage::Open(const Options& options, const Deps& deps) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, OpenStore(options, deps.random));
  return std::unique_ptr<Storage>(new Storage(std::move(store), options, deps));
}

Storage::Storage(std::unique_ptr<Store> store, const Options& options, const Deps& deps)
    : health_(deps.health),
      clock_(deps.clock),
      store_(std::move(store)),
      quota_(*store_, deps.clock),
      metrics_(deps.registry, *store_, options.quotas) {
  SetLimits(options.quotas, options.artifact_bytes);
  // Readiness may come back; liveness, once lost, asks the supervisor for a restart.
  health_.Declare(kStoreCondition, HealthState::Severity::kReadiness, "not open");
  health_.Declare(kStoreFilesCondition, HealthState::Severity::kLiveness, "");
  health_.Set(kStoreCondition, true);
}

void Storage::SetLimits(const CaptureQuotas& quotas, uint64_t artifact_bytes) {
  quota_.Set(quotas);
  metrics_.SetQuotas(quotas);
  store_->artifacts().files().SetBytesMax(artifact_bytes);
}

void Storage::RecordWrite(Written what, const absl::Status& status) {
  const bool is_full = absl::IsResourceExhausted(status);
  const uint64_t now_ns = clock_.MonotonicNs();
  const MutexLock lock(mutex_);
  if (status.ok()) {
    const bool chunks_lack_room = failure_ && failure_->what == Written::kChunks &&
                                  absl::IsResourceExhausted(failure_->status);
    if (what == Written::kRecord && chunks_lack_room) return;
    failure_.reset();
  } else {
    if (!failure_) failure_ = Failure{.what = what, .since_realtime_ns = clock_.RealtimeNs()};
    // A record that fails besides does not hide that chunks fail.
    if (what == Written::kChunks) failure_->what = what;
    failure_->status = status;
    failure_->last_monotonic_ns = now_ns;
    // A full disk is no reason to restart: writes succeed again as soon as it has room.
    if (is_full) {
      failure_->failing_since_ns = 0;
    } else if (failure_->failing_since_ns == 0) {
      failure_->failing_since_ns = now_ns;
    }
  }
  // With the lock, so that the condition is that of the last write.
  health_.Set(kStoreCondition, status.ok(), std::string(status.message()));
}

std::optional<Storage::WriteProblem> Storage::write_problem() const {
  WriteProblem problem;
  {
    const MutexLock lock(mutex_);
    if (!failure_) return std::nullopt;
    problem = {.text = std::string(failure_->status.message()),
               .is_full = absl::IsResourceExhausted(failure_->status),
               .since_realtime_ns = failure_->since_realtime_ns,
               .free_bytes = {}};
  }
  if (const auto free_bytes = store_->free_bytes(); free_bytes.ok()) {
    problem.free_bytes = *free_bytes;
  }
  return problem;
}

void Storage::EndFullIfRoom() {
  {
    const MutexLock lock(mutex_);
    if (!failure_ || !absl::IsResourceExhausted(failure_->status)) return;
    if (clock_.MonotonicNs() < failure_->last_monotonic_ns + kFullPatienceNs) return;
  }
  // Without the lock, which writers need. A write that fails meanwhile is followed by others.
  if (store_->ProbeDisk().ok()) RecordWrite(Written::kChunks, absl::OkStatus());
}

// A store that has to be opened again after a full disk can still be read. Therefore the program
// exits only once opening it can succeed.
void Storage::CheckHealth() {
  if (must_restart_) return;
  EndFullIfRoom();
  uint64_t since_ns = 0;
  {
    const MutexLock lock(mutex_);
    if (failure_) since_ns = failure_->failing_since_ns;
  }
  // Two ways to become unusable: every write fails for a while, or RocksDB has said that it cannot
  // be resumed.
  const bool is_over = since_ns != 0 && clock_.MonotonicNs() >= since_ns + kStorePatienceNs;
  if (!is_over && !store_->must_reopen()) return;
  std::string why = "the store accepts no writes until it is reopened";
  // A restart on a full disk would fail and take away the reads, too.
  const absl::Status disk = is_over ? absl::OkStatus() : store_->ProbeDisk();
  if (!disk.ok()) why += fmt::format(", which waits for the disk: {}", std::string(disk.message()));
  health_.Set(kStoreFilesCondition, false, why);
  if (!disk.ok()) return;
  SPDLOG_ERROR("{}: exiting with code 1; the next start repairs the damage", why);
  must_restart_ = true;
}

}  // namespace neurontrace
