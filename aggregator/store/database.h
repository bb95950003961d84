// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// The column families, in the order in which docs/formats/store.md lists them.
enum class Family : uint8_t {
  kMeta = 0,
  kCaptures,
  kAgents,
  kWorkers,
  kStreams,
  kChunks,
  kChunkIndex,
  kClockObservations,
  kClockModels,
  kArtifacts,
};
inline constexpr size_t kFamilyCount = 10;
std::string_view FamilyName(Family family);

// RocksDB's own words as ours: what was being done, what came of it, and the fix where it is known.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

inline rocksdb::Slice ToSlice(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

// The open database: RocksDB with our families and options, and nothing about what is in them but
// the format version. Included only by the .cc files of this folder. Any thread.
class Database {
 public:
  // Makes the directory and the families where they are not there yet. FAILED_PRECONDITION when
  // another process has it open or when its format is newer than this build's. `env` is not owned;
  // nullptr is the machine's.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path, rocksdb::Env* env);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  rocksdb::DB& db() { return *db_; }
  rocksdb::ColumnFamilyHandle* family(Family family) const {
    return handles_[static_cast<size_t>(family)];
  }

  // nullopt-like: NOT_FOUND where there is no such key.
  absl::StatusOr<std::string> Get(Family family, std::string_view key) const;
  absl::Status Put(Family family, std::string_view key, std::string_view value, bool sync);

  // Removes [begin, end) of a family and gives its space back.
  absl::Status DeleteRange(Family family, std::string_view begin, std::string_view end);

  // Calls `visit(key, value)` for every key that begins with `prefix`, in order, until it fails.
  template <typename Visit>
  absl::Status ForEach(Family of, std::string_view prefix, Visit visit) const {
    std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator({}, family(of)));
    for (it->Seek(ToSlice(prefix)); it->Valid() && it->key().starts_with(ToSlice(prefix));
         it->Next()) {
      if (absl::Status status = visit(ToView(it->key()), ToView(it->value())); !status.ok()) {
        return status;
      }
    }
    return FromRocksDb(it->status(), "reading the store");
  }

  // Bytes on disk.
  uint64_t Bytes() const;

 private:
  Database() = default;
  absl::Status CheckFormat();

  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> handles_;
};

}  // namespace neurontrace
