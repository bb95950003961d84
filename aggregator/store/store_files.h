// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace neurontrace {

// Which files of a store's directory belong to the store. The directory may hold others, such as
// the audit log or an operator's notes; those are never read, counted, moved or deleted. The names
// are those that RocksDB's ParseFileName accepts (file/filename.cc). Pure functions.
bool IsWalFile(std::string_view name);    // 000012.log
bool IsTableFile(std::string_view name);  // 000012.sst
bool IsBlobFile(std::string_view name);   // 000012.blob
// Any file that RocksDB or the repair of a store writes, for example CURRENT, OPTIONS-000012,
// 000012.log.damaged or DAMAGED_LOG.
bool IsStoreFile(std::string_view name);

// Sorts files of one kind by their numbers, which is the order in which they were created.
void SortByNumber(std::vector<std::string>& names);

// Exists while the loss from a damaged write-ahead log has not been determined yet. Its name must
// not begin with LOG: RocksDB would delete it as an old log of messages.
inline constexpr std::string_view kWalDamageFile = "DAMAGED_LOG";
// Exists after a rebuild that did not help, until the store opens. Another rebuild would not help
// either, and each leaves a copy of the store.
inline constexpr std::string_view kFutileRebuildFile = "REBUILT_IN_VAIN";
// Lists damage that was found while nobody could write to the database: see found_damage.h.
inline constexpr std::string_view kFoundDamageFile = "FOUND_DAMAGE";
// Suffixes of a replaced write-ahead log, and of its replacement until it is in place.
inline constexpr std::string_view kDamagedWalSuffix = ".damaged";
inline constexpr std::string_view kWholeWalSuffix = ".whole";

// Fails with FAILED_PRECONDITION if a store's file among `names` is a link or not a regular file. A
// copy may come from anybody: a link would expose or change what lies elsewhere, and a FIFO blocks
// for ever. A directory may lie elsewhere, for example on a larger disk.
absl::Status CheckStoreFiles(const std::string& path, const std::vector<std::string>& names);

// Checks a store's directory before RocksDB opens it, which would report the problem badly or,
// without a CURRENT file, create a new database and delete the files of the old one. Returns OK
// also for a directory that is empty or does not exist. Fails with DATA_LOSS if CURRENT is missing.
absl::Status CheckStoreDirectory(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
