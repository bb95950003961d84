// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rocksdb/env.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// Replaces a damaged database by one that was built beside it. The new one is created in
// PATH/rebuilding. Once it is complete the old files move to PATH/damaged-N and the new ones to
// PATH, in steps that can be interrupted anywhere and resumed. The caller holds the lock of PATH.
// The functions keep no state, block, and are called on the thread that opens the store.
//
// Creates PATH/rebuilding, empty, and returns its name.
absl::StatusOr<std::string> BeginRebuilding(const std::string& path, rocksdb::Env& env);
// Marks PATH/rebuilding as complete, moves it into place, and returns the name damaged-N of the
// directory with the old files.
absl::StatusOr<std::string> FinishRebuilding(const std::string& path, rocksdb::Env& env);
// Called at every start before the database is opened. Completes an interrupted move, and removes a
// database that was not complete. Fails with FAILED_PRECONDITION, and moves nothing, if the marker
// of a move names anything but a damaged-N.
absl::Status ResumeRebuilding(const std::string& path, rocksdb::Env& env);

}  // namespace neurontrace
