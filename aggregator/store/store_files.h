// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace neurontrace {

// Which files of a store's directory are the store's. The directory may hold others, such as the
// audit log or an operator's notes: those are never read, counted, moved or deleted. RocksDB's
// names are those that its ParseFileName accepts (file/filename.cc). Pure.
bool IsWalFile(std::string_view name);    // 000012.log
bool IsTableFile(std::string_view name);  // 000012.sst
bool IsBlobFile(std::string_view name);   // 000012.blob
// Any file that RocksDB or the repair of a store writes, for example CURRENT, OPTIONS-000012,
// 000012.log.damaged or DAMAGED_LOG.
bool IsStoreFile(std::string_view name);

// Says, until it is removed, that what a damaged write-ahead log lacked has not been found yet. The
// name must not begin with LOG: RocksDB would delete it as an old log of messages.
inline constexpr std::string_view kWalDamageFile = "DAMAGED_LOG";
// Says that a rebuild did not help, until the store opens: another one would not help either, and
// each leaves a copy of the store.
inline constexpr std::string_view kRebuiltInVainFile = "REBUILT_IN_VAIN";
// Damage that was found while nobody could write to the database: found_damage.h.
inline constexpr std::string_view kFoundDamageFile = "FOUND_DAMAGE";
// Suffixes of a damaged write-ahead log that was replaced, and of its replacement until then.
inline constexpr std::string_view kDamagedWalSuffix = ".damaged";
inline constexpr std::string_view kWholeWalSuffix = ".whole";

// Fails with FAILED_PRECONDITION if a file of the store among `names` is a link or no regular file:
// a copy may come from anybody, a link would show or change what lies elsewhere, and a FIFO blocks
// for ever. A directory may lie elsewhere, for example on a larger disk.
absl::Status CheckStoreFiles(const std::string& path, const std::vector<std::string>& names);

// Checks a store's directory before RocksDB opens it, which would report the problem badly or,
// without a CURRENT file, create a new database and delete the files of the old one. Returns OK
// also for a directory that is empty or does not exist. Fails with DATA_LOSS if CURRENT is missing.
absl::Status CheckStoreDirectory(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
