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

// Bytes of a write-ahead log that are no record.
struct WalDamage {
  std::string file;
  uint64_t offset = 0;
  // False: the end of the file, as after a crash in the middle of a write that was therefore never
  // acknowledged. True: whole writes follow, so this one was whole once, too.
  bool records_follow = false;
  uint64_t further = 0;  // places behind it that are not told

  std::string ToString() const;
};

using VisitBatch = std::function<absl::Status(std::string_view batch)>;

// Reads the write-ahead logs of a database that no process has open, in the order of their numbers,
// as RocksDB writes them (its log format is fixed and documented): blocks of 32 KiB, records in
// fragments, each with a checksum. `visit` gets each whole record, a WriteBatch. Damage is passed
// over, and only what it hit: RocksDB itself would drop the rest of the block, behind a header of
// zeros without a word. Of damage the first
// limits::kWalDamageNamedMax places are told, and a record of more than `record_bytes_max` is one.
// Errors are those of reading and of `visit`.
absl::StatusOr<std::vector<WalDamage>> ScanWal(
    const std::string& path, rocksdb::Env& env, const VisitBatch& visit,
    size_t record_bytes_max = limits::kWalRecordBytesMax);

// Puts in the place of each damaged log one with all its whole records, so that RocksDB reads it
// to its end. The damaged ones stay beside them, with `.damaged` behind their names.
absl::Status RewriteDamagedLogs(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
