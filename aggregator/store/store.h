// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/artifact_store.h"
#include "aggregator/store/capture_reader.h"
#include "aggregator/store/capture_store.h"
#include "aggregator/store/chunk_store.h"
#include "aggregator/store/clock_evidence_store.h"
#include "aggregator/store/clock_model_store.h"
#include "aggregator/store/clock_record.h"
#include "aggregator/store/database.h"
#include "aggregator/store/digest_store.h"
#include "aggregator/store/durability.h"
#include "aggregator/store/inventory_store.h"
#include "aggregator/store/store_check.h"
#include "lib/trace/ids.h"

namespace rocksdb {
class Env;
}

namespace neurontrace {

class Database;

struct StoreOptions {
  // For tests: keeps everything in memory and forgets it at the end.
  bool in_memory = false;
  // The file system; must outlive the store. nullptr is the machine's own. Tests use others to
  // simulate crashes and failing disks.
  rocksdb::Env* env = nullptr;
  // Validates chunks while damage is repaired. If it is empty, damage is an error of Open.
  ExamineChunk examine;
  // Which captures no longer need clock evidence. If it is empty, all of them do.
  AreClocksFinal are_clocks_final;
  // The id of a new store, by which agents and operators identify the aggregator. An existing store
  // keeps its own.
  std::string aggregator_id = "aggregator";
  Durability durability = Durability::kSynced;
};

// The durable state of an aggregator: one RocksDB database and the artifacts beside it, in one
// directory that one process has open at a time. Owns the database and the parts it hands out,
// which must not outlive it; nor may readers. Any thread; writes wait for the disk.
class Store {
 public:
  // Opens or creates the store. Repairs a damaged one, which takes as long as reading it; notes()
  // then describes the repair. Fails with FAILED_PRECONDITION if another process has the directory
  // or a newer version wrote it, with DATA_LOSS if it is damaged beyond repair, and with
  // UNAVAILABLE or RESOURCE_EXHAUSTED if the disk refuses.
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
  DigestStore& digests() { return *digests_; }
  const DigestStore& digests() const { return *digests_; }

  ArtifactStore& artifacts() { return *artifacts_; }
  const ArtifactStore& artifacts() const { return *artifacts_; }

  // Returns a reader of a capture, which may still be growing. An unknown one has no streams.
  CaptureReader OpenCapture(const CaptureId& id) const { return {*database_, *chunks_, id}; }
  // Returns a reader that sees the capture as it is now, whatever is written or deleted later.
  CaptureReader OpenSnapshot(const CaptureId& id) const { return OpenCapture(id).Snapshot(); }

  // Deletes a capture with everything that belongs to it. Fails with NOT_FOUND if there is none. If
  // it fails after the record is deleted, or a crash interrupts it, the next Open completes it.
  absl::StatusOr<ChunkStore::Deleted> DeleteCapture(const CaptureId& id);

  const std::string& aggregator_id() const { return aggregator_id_; }
  // Returns how timestamps relate to the machine's clock; an empty record in a new store. Not
  // synced.
  absl::StatusOr<ClockRecord> ReadClock() const;
  absl::Status WriteClock(const ClockRecord& record);
  uint64_t bytes() const;  // of database files and memtables
  DatabaseState database_state() const;
  absl::StatusOr<uint64_t> wal_bytes() const;  // asks the disk
  // Returns the bytes that the disk has left for this process; UINT64_MAX in memory.
  absl::StatusOr<uint64_t> free_bytes() const;
  // Both as in Database.
  bool must_reopen() const;
  absl::Status ProbeDisk() const;
  // Returns a sentence for each thing that Open found wrong and what it did about it.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Environment;
  Store();

  std::unique_ptr<Environment> environment_;  // outlives database_
  std::unique_ptr<Database> database_;
  std::unique_ptr<CaptureStore> captures_;
  std::unique_ptr<ChunkStore> chunks_;
  std::unique_ptr<InventoryStore> inventory_;
  std::unique_ptr<ClockEvidenceStore> clocks_;
  std::unique_ptr<ClockModelStore> clock_models_;
  std::unique_ptr<DigestStore> digests_;
  std::unique_ptr<ArtifactStore> artifacts_;
  std::string aggregator_id_;
  std::vector<std::string> notes_;
};

}  // namespace neurontrace
