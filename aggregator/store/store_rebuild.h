// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/store/clock_model_store.h"
#include "aggregator/store/database.h"
#include "aggregator/store/store_check.h"

namespace neurontrace {

// Reads everything of a database but the chunks themselves: every block of every table, the ends of
// every blob file, every record of the small families. A database that passes can be opened and
// used; a damaged chunk in it is found by its reader. Fails with DATA_LOSS that names the first
// damage. The database may be compacting meanwhile. Any thread; blocks.
absl::Status VerifyTables(const Database& database);

// What a repair needs from code that knows what the stored bytes mean; see StoreOptions. Without
// `are_clocks_final` no models count as final.
struct StoreRepair {
  ExamineChunk examine;
  AreClocksFinal are_clocks_final;
};

// Opens a store and makes it usable, whatever happened to its files (docs/decisions/0010, 0038). If
// damage keeps RocksDB from working, a new database is built out of everything readable, and the
// old files are set aside in damaged-N beside it. From a damaged log all whole writes are used.
//
// What is lost appears in the records of the streams, and lost clock evidence in the captures that
// still need it. Adds a sentence to `notes` for each thing found and done. Fails with DATA_LOSS if
// the store is damaged and `examine` is empty, or if it is still damaged after a rebuild. It is
// then not rebuilt again until an operator asks for it. Works on the calling thread, which it
// blocks.
absl::StatusOr<std::unique_ptr<Database>> OpenOrRebuild(const std::string& path, rocksdb::Env& env,
                                                        const StoreRepair& repair,
                                                        std::vector<std::string>& notes);

}  // namespace neurontrace
