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
// every blob file, every record of the small families. What passes can be opened and worked with.
// DATA_LOSS names the first damage. The database may be compacting meanwhile.
absl::Status VerifyTables(const Database& database);

// What a repair asks those who know what the bytes mean. Without `are_clocks_final` none are.
struct StoreRepair {
  ExamineChunk examine;
  AreClocksFinal are_clocks_final;
};

// Opens a store and sees to it that it can be worked with, whatever its files went through
// (docs/decisions/0010). Damage that RocksDB cannot live with makes the database again out of all
// that can be read in its files, which are set aside in damaged-N beside it; a log that is damaged
// gives what is whole in it. What is lost then is in the streams' records, and so is that evidence
// of clocks was lost which their captures still need. `notes` gets a sentence
// for each thing found and done. Without `examine` damage is an error (DATA_LOSS), and so is what
// was there after a rebuild still: it is not rebuilt again until somebody says so.
absl::StatusOr<std::unique_ptr<Database>> OpenOrRebuild(const std::string& path, rocksdb::Env& env,
                                                        const StoreRepair& repair,
                                                        std::vector<std::string>& notes);

}  // namespace neurontrace
