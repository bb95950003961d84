// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// Converts a status of RocksDB. The message has what was being done, what went wrong and, if known,
// what to do about it. DATA_LOSS is damage, RESOURCE_EXHAUSTED a full disk, FAILED_PRECONDITION
// something that an operator has to change, UNAVAILABLE something that may pass. Pure.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

}  // namespace neurontrace
