// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/artifact_store.h"
#include "aggregator/store/capture_reader.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/clock_model_store.h"
#include "aggregator/store/clock_record.h"
#include "aggregator/store/database.h"
#include "aggregator/store/durability.h"
#include "aggregator/store/inventory_store.h"
#include "aggregator/store/store_check.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace rocksdb {
class Env;
}

namespace neurontrace {

class Database;

// The records of captures. Any thread.
class CaptureStore {
 public:
  explicit CaptureStore(Database& database) : database_(database) {}
  CaptureStore(const CaptureStore&) = delete;
  CaptureStore& operator=(const CaptureStore&) = delete;

  // Reads which captures there are; once, before anything else.
  absl::Status Load();

  // Writes or replaces. With `durable` it is on disk on return; without, after a moment.
  absl::Status Put(const CaptureRecord& record, bool durable);
  absl::StatusOr<CaptureRecord> Get(const CaptureId& id) const;
  // Oldest first.
  absl::StatusOr<std::vector<CaptureRecord>> List() const;
  std::vector<CaptureId> Ids() const;  // the same
  size_t size() const;

  // Returns the one capture, of those that `counts` admits, whose id, as text, is or begins with
  // `text`, either case. Fails with INVALID_ARGUMENT if several do (it says which) or if it is no
  // such text, and with NOT_FOUND if none does. An empty `counts` admits all.
  absl::StatusOr<CaptureId> Find(std::string_view text,
                                 const std::function<bool(const CaptureId&)>& counts = {}) const;

  // Only the record: see ChunkStore::DeleteCapture for the rest.
  absl::Status Delete(const CaptureId& id);

 private:
  Database& database_;
  mutable Mutex mutex_;
  std::set<CaptureId> ids_ NT_GUARDED_BY(mutex_);
};

class Database;

struct StoreOptions {
  // Keeps everything in memory and forgets it at the end: for tests of what stands on a store.
  bool in_memory = false;
  // The disk; outlives the store. nullptr: the machine's own. For tests of what a crash or a
  // failing disk leaves.
  rocksdb::Env* env = nullptr;
  // Looks at chunks when damage has to be repaired; without it, damage is an error.
  ExamineChunk examine;
  AreClocksFinal are_clocks_final;
  // The id of a new store, by which agents and people know the aggregator; an existing one keeps
  // its own.
  std::string aggregator_id = "aggregator";
  Durability durability = Durability::kSynced;
};

// The durable truth of an aggregator: one RocksDB database, owned, in one directory. Any thread.
// Readers handed out must not outlive it.
class Store {
 public:
  // A damaged store is repaired, which takes as long as reading it; notes() says so.
  // FAILED_PRECONDITION when another process has the directory or a newer version wrote it,
  // DATA_LOSS when it is damaged and cannot be repaired, UNAVAILABLE or RESOURCE_EXHAUSTED when the
  // disk refuses.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path,
                                                     const StoreOptions& options);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  CaptureStore& captures() { return *captures_; }
  const CaptureStore& captures() const { return *captures_; }
  ChunkStore& chunks() { return *chunks_; }
  InventoryStore& inventory() { return *inventory_; }
  const InventoryStore& inventory() const { return *inventory_; }
  ClockEvidenceStore& clocks() { return *clocks_; }
  const ClockEvidenceStore& clocks() const { return *clocks_; }
  ClockModelStore& clock_models() { return *clock_models_; }
  const ClockModelStore& clock_models() const { return *clock_models_; }

  ArtifactStore& artifacts() { return *artifacts_; }
  const ArtifactStore& artifacts() const { return *artifacts_; }

  // Reads a capture, which need not have ended nor exist (it then has no streams).
  CaptureReader OpenCapture(const CaptureId& id) const { return {*database_, *chunks_, id}; }
  // The same as it is now, whatever is deleted or comes meanwhile.
  CaptureReader OpenSnapshot(const CaptureId& id) const { return OpenCapture(id).Snapshot(); }

  // Removes a capture with everything of it. NOT_FOUND where there is none.
  absl::StatusOr<ChunkStore::Deleted> DeleteCapture(const CaptureId& id);

  const std::string& aggregator_id() const { return aggregator_id_; }
  // How stamps relate to the machine's clock; an empty record in a new store.
  absl::StatusOr<ClockRecord> ReadClock() const;
  absl::Status WriteClock(const ClockRecord& record);
  uint64_t bytes() const;  // on disk
  DatabaseState database_state() const;
  absl::StatusOr<uint64_t> wal_bytes() const;  // asks the disk
  // That the disk has left for this process; UINT64_MAX in memory.
  absl::StatusOr<uint64_t> free_bytes() const;
  // See Database.
  bool must_reopen() const;
  absl::Status ProbeDisk() const;
  // What was wrong when it was opened, and what was done about it: a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Environment;
  Store();

  std::unique_ptr<Environment> environment_;  // outlives the database
  std::unique_ptr<Database> database_;
  std::unique_ptr<CaptureStore> captures_;
  std::unique_ptr<ChunkStore> chunks_;
  std::unique_ptr<InventoryStore> inventory_;
  std::unique_ptr<ClockEvidenceStore> clocks_;
  std::unique_ptr<ClockModelStore> clock_models_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::string aggregator_id_;
  std::vector<std::string> notes_;
};

class Store;

// How much of the disk is taken, and by whom: what quotas are held against. Cheap enough to be
// asked for every chunk group and every tick: no answer but the first of each capture reads the
// store. Any thread; must not outlive the store.
class StoreUsage {
 public:
  explicit StoreUsage(Store& store) : store_(store) {}

  // Chunks of a capture as they are stored (headers and compressed columns), without what has
  // expired; 0 of one that is not known. Errors of reading the store.
  absl::StatusOr<uint64_t> CaptureBytes(const CaptureId& id) const;
  // What the disk has left for this process. UINT64_MAX for a store in memory.
  absl::StatusOr<uint64_t> FreeBytes() const;

 private:
  Store& store_;
};

}  // namespace neurontrace
