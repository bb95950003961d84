// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store.h"

#include <utility>

#include "aggregator/store/store_rebuild.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// In family `meta`.
constexpr std::string_view kAggregatorIdKey = "aggregator_id";

}  // namespace

struct Store::Environment {
  std::unique_ptr<rocksdb::Env> env;  // for a store in memory, otherwise null
};

Store::Store() = default;

Store::~Store() = default;

// The order matters: each part cleans up what an interruption left, and relies on those before it.
absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path,
                                                   const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store);
  store->environment_ = std::make_unique<Environment>();
  if (options.in_memory) {
    store->environment_->env.reset(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  }
  rocksdb::Env* env = options.env != nullptr ? options.env : rocksdb::Env::Default();
  if (options.in_memory) env = store->environment_->env.get();
  ASSIGN_OR_RETURN(
      store->database_,
      OpenOrRebuild(path, *env, {options.examine, options.are_clocks_final}, store->notes_));
  Database& database = *store->database_;

  // The id is created once with the store and never changes, since spools of agents refer to it.
  auto id = database.Get(Family::kMeta, kAggregatorIdKey);
  if (absl::IsNotFound(id.status())) {
    RETURN_IF_ERROR(database.Put(Family::kMeta, kAggregatorIdKey, options.aggregator_id, true));
    id = options.aggregator_id;
  }
  if (!id.ok()) return id.status();
  store->aggregator_id_ = *std::move(id);

  store->captures_ = std::make_unique<CaptureStore>(database);
  RETURN_IF_ERROR(store->captures_->Load());
  // Deletions are completed first: nothing after this should spend time on, or count, what they
  // remove.
  store->chunks_ = std::make_unique<ChunkStore>(database, options.durability);
  RETURN_IF_ERROR(store->chunks_->FinishDeletions());
  // Only a note: found damage that cannot be moved now stays in its file for the next start.
  if (const auto found = store->chunks_->TakeFoundDamage(options.examine); !found.ok()) {
    store->notes_.push_back(std::string(found.status().message()));
  } else if (*found > 0) {
    store->notes_.push_back(fmt::format(
        "{} faults found earlier are now in the certificates of their captures", *found));
  }
  store->inventory_ = std::make_unique<InventoryStore>(database);
  store->clocks_ = std::make_unique<ClockEvidenceStore>(database, options.durability);
  store->clock_models_ = std::make_unique<ClockModelStore>(database, options.durability);
  RETURN_IF_ERROR(store->clock_models_->FinishDeletions());
  store->digests_ = std::make_unique<DigestStore>(database);
  // Only a note: what cannot be read of digests is read from the chunks.
  if (const absl::Status status = store->digests_->FinishDeletions(); !status.ok()) {
    store->notes_.push_back(fmt::format("digests of captures cannot be read, which slows views: {}",
                                        std::string(status.message())));
  }
  store->artifacts_ = std::make_unique<ArtifactStore>(database, path + "/artifacts");
  RETURN_IF_ERROR(store->artifacts_->Open());
  return store;
}

absl::StatusOr<ChunkStore::Deleted> Store::DeleteCapture(const CaptureId& id) {
  if (const auto record = captures_->Get(id); !record.ok()) return record.status();
  // The record first: after it no chunk is stored for the capture, and what a crash then leaves is
  // recognised and removed at the next start by each part's own clean-up.
  RETURN_IF_ERROR(captures_->Delete(id));
  RETURN_IF_ERROR(clock_models_->Delete(id));
  RETURN_IF_ERROR(digests_->Delete(id));
  RETURN_IF_ERROR(artifacts_->DeleteCapture(id));
  return chunks_->DeleteCapture(id);
}

absl::StatusOr<ClockRecord> Store::ReadClock() const {
  const auto text = database_->Get(Family::kMeta, kClockRecordKey);
  if (absl::IsNotFound(text.status())) return ClockRecord();
  RETURN_IF_ERROR(text.status());
  return DecodeClockRecord(*text);
}

absl::Status Store::WriteClock(const ClockRecord& record) {
  return database_->Put(Family::kMeta, kClockRecordKey, EncodeClockRecord(record), /*sync=*/false);
}

uint64_t Store::bytes() const { return database_->Bytes(); }

DatabaseState Store::database_state() const { return database_->State(); }

absl::StatusOr<uint64_t> Store::wal_bytes() const { return database_->WalBytes(); }

bool Store::must_reopen() const { return database_->must_reopen(); }

absl::Status Store::ProbeDisk() const { return database_->ProbeDisk(); }

absl::StatusOr<uint64_t> Store::free_bytes() const {
  if (environment_->env != nullptr) return UINT64_MAX;
  uint64_t bytes = 0;
  RETURN_IF_ERROR(FromRocksDb(database_->env().GetFreeSpace(database_->path(), &bytes),
                              "reading the free space of the disk"));
  return bytes;
}

}  // namespace neurontrace
