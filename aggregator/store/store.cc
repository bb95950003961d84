// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "aggregator/store/keys.h"
#include "aggregator/store/record_codec.h"
#include "aggregator/store/store_rebuild.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

// How many matches the error for an ambiguous prefix lists.
constexpr size_t kCandidatesNamed = 8;

// In family `meta`.
constexpr std::string_view kAggregatorIdKey = "aggregator_id";

}  // namespace

// A key of another length is damage; the ids that were read are kept in any case.
absl::Status CaptureStore::Load() {
  const MutexLock lock(mutex_);
  std::set<CaptureId> ids;
  const absl::Status status =
      database_.ForEach(Family::kCaptures, "", [&](std::string_view key, std::string_view) {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("malformed key of {} bytes in family captures", key.size());
        // A record that cannot be decoded still exists; Get reports the damage.
        ids.insert(*id);
        return absl::OkStatus();
      });
  ids_.merge(ids);
  return status;
}

// The id becomes known only after the write, so nobody finds a capture that is not stored.
absl::Status CaptureStore::Put(const CaptureRecord& record, bool durable) {
  RETURN_IF_ERROR(database_.Put(Family::kCaptures, keys::Capture(record.id),
                                EncodeCaptureRecord(record), durable));
  const MutexLock lock(mutex_);
  ids_.insert(record.id);
  return absl::OkStatus();
}

absl::StatusOr<CaptureRecord> CaptureStore::Get(const CaptureId& id) const {
  const auto value = database_.Get(Family::kCaptures, keys::Capture(id));
  if (absl::IsNotFound(value.status())) return NotFound("no capture {}", id.ToString());
  RETURN_IF_ERROR(value.status());
  return DecodeCaptureRecord(id, *value);
}

absl::StatusOr<std::vector<CaptureRecord>> CaptureStore::List() const {
  std::vector<CaptureRecord> records;
  RETURN_IF_ERROR(
      database_.ForEach(Family::kCaptures, "", [&](std::string_view key, std::string_view value) {
        const auto id = CaptureId::FromBytes(key);
        if (!id.ok()) return DataLoss("malformed key of {} bytes in family captures", key.size());
        auto record = DecodeCaptureRecord(*id, value);
        if (record.ok()) records.push_back(*std::move(record));
        return record.status();
      }));
  return records;
}

std::vector<CaptureId> CaptureStore::Ids() const {
  const MutexLock lock(mutex_);
  return {ids_.begin(), ids_.end()};
}

size_t CaptureStore::size() const {
  const MutexLock lock(mutex_);
  return ids_.size();
}

// Takes time proportional to the number of captures.
absl::StatusOr<CaptureId> CaptureStore::Find(
    std::string_view text, const std::function<bool(const CaptureId&)>& counts) const {
  std::string prefix(text);
  // Ids are base 32 in upper case, and people type them in either.
  std::transform(prefix.begin(), prefix.end(), prefix.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (prefix.empty() || prefix.size() > CaptureId::kTextLength) {
    return InvalidArgument("a capture id has 1 to {} characters, but this one has {}",
                           CaptureId::kTextLength, prefix.size());
  }
  std::vector<CaptureId> found;
  {
    const MutexLock lock(mutex_);
    for (const CaptureId& id : ids_) {
      if (id.ToString().starts_with(prefix)) found.push_back(id);
    }
  }
  // Outside the lock, as it may ask this store.
  if (counts) std::erase_if(found, [&counts](const CaptureId& id) { return !counts(id); });
  if (found.empty()) return NotFound("no capture has an id that begins with '{}'", text);
  if (found.size() == 1) return found.front();
  std::string names;
  for (size_t i = 0; i < std::min(found.size(), kCandidatesNamed); ++i) {
    names += (i == 0 ? "" : ", ") + found[i].ToString();
  }
  if (found.size() > kCandidatesNamed) names += ", …";
  return InvalidArgument("'{}' matches {} captures: {}", prefix, found.size(), names);
}

absl::Status CaptureStore::Delete(const CaptureId& id) {
  rocksdb::WriteBatch batch;
  batch.Delete(database_.family(Family::kCaptures), keys::Capture(id));
  RETURN_IF_ERROR(database_.Write(batch, /*sync=*/true, "deleting a capture's record"));
  const MutexLock lock(mutex_);
  ids_.erase(id);
  return absl::OkStatus();
}

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

absl::StatusOr<uint64_t> StoreUsage::CaptureBytes(const CaptureId& id) const {
  return store_.chunks().BytesOf(id);
}

absl::StatusOr<uint64_t> StoreUsage::FreeBytes() const { return store_.free_bytes(); }

}  // namespace neurontrace
