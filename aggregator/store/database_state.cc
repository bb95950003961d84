// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database_state.h"

#include <string>

#include "aggregator/store/database.h"
#include "aggregator/store/store_files.h"
#include "base/status.h"

namespace neurontrace {

DatabaseState Database::State() const {
  using Properties = rocksdb::DB::Properties;
  const auto of_all = [this](const std::string& property) {
    uint64_t sum = 0;
    return db_->GetAggregatedIntProperty(property, &sum) ? sum : 0;
  };
  // Of the whole database, whichever family is asked.
  const auto of_one = [this](const std::string& property) {
    uint64_t value = 0;
    return db_->GetIntProperty(property, &value) ? value : 0;
  };
  return {.memtable_bytes = of_all(Properties::kSizeAllMemTables),
          .blob_garbage_bytes = of_all(Properties::kLiveBlobFileGarbageSize),
          .compaction_pending_bytes = of_all(Properties::kEstimatePendingCompactionBytes),
          .background_errors = of_one(Properties::kBackgroundErrors),
          .write_stalled = of_one(Properties::kIsWriteStopped) != 0 ||
                           of_one(Properties::kActualDelayedWriteRate) != 0};
}

absl::StatusOr<uint64_t> Database::WalBytes() const {
  std::vector<std::string> names;
  RETURN_IF_ERROR(FromRocksDb(env_->GetChildren(path_, &names), "listing the store's directory"));
  uint64_t sum = 0;
  for (const std::string& name : names) {
    if (!IsWalFile(name)) continue;
    uint64_t bytes = 0;
    // One that is not needed any more goes at any time.
    if (env_->GetFileSize(path_ + "/" + name, &bytes).ok()) sum += bytes;
  }
  return sum;
}

}  // namespace neurontrace
