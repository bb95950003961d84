// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// The database that takes a damaged one's place is made in PATH/rebuilding. Once it is complete the
// old files go to PATH/damaged-N and the new ones to PATH, in steps that a crash may interrupt
// anywhere.

// An empty PATH/rebuilding, and its name.
absl::StatusOr<std::string> BeginRebuilding(const std::string& path, rocksdb::Env& env);
// Says that what is in it is complete and moves it in; gives the name of what was set aside.
absl::StatusOr<std::string> FinishRebuilding(const std::string& path, rocksdb::Env& env);
// At every start, before the database is opened: ends a move that was interrupted, and removes a
// database that was not complete. FAILED_PRECONDITION where the marker of such a move names
// anything but a damaged-N: nothing is moved then.
absl::Status ResumeRebuilding(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
