// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/status.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace neurontrace {

// RocksDB's own words as ours: what was being done, what came of it, and what to do about it where
// that is known. DATA_LOSS is damage, RESOURCE_EXHAUSTED a full disk, FAILED_PRECONDITION what a
// person has to change, UNAVAILABLE what may pass.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

// Looks at a store's directory before RocksDB does, which would say it badly or, where its CURRENT
// file is gone, begin a new database and delete the files of the old one. OK also for a directory
// that is empty or not there; DATA_LOSS for one that has lost what RocksDB begins with.
absl::Status LookAtStoreDirectory(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
