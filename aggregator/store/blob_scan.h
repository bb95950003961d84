// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// Result of reading one blob file.
struct BlobScan {
  uint64_t records = 0;  // sound ones, each given to `visit`
  uint64_t damaged = 0;  // places without a record, and records with a wrong checksum
};

// Reads one blob file of RocksDB without the rest of the database. That is possible because a blob
// file holds each record whole, with its key and checksums, in a fixed format (RocksDB,
// db/blob/blob_log_format.h).
//
// Calls `visit` for each sound record, in file order; its views are valid during the call only.
// Skips damage, also in the file's own header, and counts it. Fails with the error of reading or of
// `visit`. Holds at most the largest record and a buffer in memory. Works on the calling thread,
// which it blocks.
absl::StatusOr<BlobScan> ScanBlobFile(
    const std::string& file, rocksdb::Env& env,
    const std::function<absl::Status(std::string_view key, std::string_view value)>& visit);

// Checks the header and the footer of a blob file, without which RocksDB reads nothing in it, but
// none of its records. Fails with DATA_LOSS if one is damaged or the file is missing. Any thread;
// blocks.
absl::Status CheckBlobFileEnds(const std::string& file, rocksdb::Env& env);

}  // namespace neurontrace
