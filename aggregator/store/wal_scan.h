// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/trace/store_limits.h"

namespace neurontrace {

// A place in a write-ahead log that holds no valid record.
struct WalDamage {
  // Name of the file, without its directory.
  std::string file;
  uint64_t offset = 0;
  // False: the end of the log, as after a crash during a write, which was therefore never
  // acknowledged. True: whole records follow, so this one was whole once, and data is lost.
  bool records_follow = false;
  uint64_t further = 0;  // places of damage after this one in the file that are not listed

  // Returns for example "000012.log at byte 4096: damaged in the middle".
  std::string ToString() const;
};

// Receives the bytes of one WriteBatch, valid during the call.
using VisitBatch = std::function<absl::Status(std::string_view batch)>;

// Reads the write-ahead logs of a database that no process has open, in the order of their numbers.
// RocksDB documents their format (db/log_format.h): blocks of 32 KiB with records in fragments
// that each have a checksum. Calls `visit` for each whole record.
//
// Skips damage, and only what it hit. RocksDB itself would drop the rest of the block, silently if
// it follows a header of zeros. Lists the first limits::kWalDamageNamedMax places, and the first of
// each log; a record larger than `record_bytes_max` is one. Fails with the error of reading or of
// `visit`. Works on the calling thread, which it blocks.
absl::StatusOr<std::vector<WalDamage>> ScanWal(
    const std::string& path, rocksdb::Env& env, const VisitBatch& visit,
    size_t record_bytes_max = limits::kWalRecordBytesMax);

// Replaces each damaged log by one with all its whole records, so that RocksDB reads it to its end.
// Keeps each damaged one beside it with the suffix `.damaged`. The caller holds the store's lock.
// Called on the thread that opens the store.
absl::Status RewriteDamagedLogs(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
