// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Converts a status of RocksDB: names what was being done, what went wrong, and what to do about it
// where that is known. DATA_LOSS is damage, RESOURCE_EXHAUSTED a full disk, FAILED_PRECONDITION
// something that a person has to change, UNAVAILABLE something that may pass.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

}  // namespace neurontrace
