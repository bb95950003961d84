// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>
#include <rocksdb/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace neurontrace {

// RocksDB's own words as ours: what was being done, what came of it, and what to do about it where
// that is known. DATA_LOSS is damage, RESOURCE_EXHAUSTED a full disk, FAILED_PRECONDITION what a
// person has to change, UNAVAILABLE what may pass.
absl::Status FromRocksDb(const rocksdb::Status& status, std::string_view doing);

// FAILED_PRECONDITION where a file among `names` of a store's directory is a link, or none at all:
// a copy may come from anybody, a link would show or change what lies elsewhere, and a FIFO waits
// for ever. A directory may lie elsewhere, as on a larger disk.
absl::Status CheckStoreFiles(const std::string& path, const std::vector<std::string>& names);

// Looks at a store's directory before RocksDB does, which would say it badly or, where its CURRENT
// file is gone, begin a new database and delete the files of the old one. OK also for a directory
// that is empty or not there; DATA_LOSS for one that has lost what RocksDB begins with.
absl::Status LookAtStoreDirectory(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
