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

// What was found in a blob file.
struct BlobScan {
  uint64_t records = 0;
  uint64_t damaged = 0;  // places where there is none, or one whose checksum is wrong
};

// Reads a blob file of RocksDB's without the rest of the database: every record is there whole,
// with its key and checksums (its format is fixed). `visit` gets each sound one; damage is passed
// over, also in the file's own header. Errors are those of reading and of `visit`.
absl::StatusOr<BlobScan> ScanBlobFile(
    const std::string& file, rocksdb::Env& env,
    const std::function<absl::Status(std::string_view key, std::string_view value)>& visit);

// Looks only at a blob file's header and footer, which RocksDB needs to read anything in it.
// DATA_LOSS where they are damaged or the file is gone.
absl::Status CheckBlobFileEnds(const std::string& file, rocksdb::Env& env);

}  // namespace neurontrace
