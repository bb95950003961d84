// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/trigger_rule.h"

// The file of rules that start captures, as TOML with a section for each rule.
// docs/user/triggers.md describes the keys. A file is accepted or refused as a whole.
namespace neurontrace {

// Returns the rules in the order of the file. Fails with INVALID_ARGUMENT and a line
// "PATH:LINE:COLUMN: [NAME]: REASON" for each problem; `text` may be hostile. Pure.
absl::StatusOr<std::vector<TriggerRule>> ParseTriggerFile(std::string_view text,
                                                          const std::string& path);

// Reads and parses a file. Fails with NOT_FOUND or FAILED_PRECONDITION if it cannot be read or is
// not a regular file, otherwise as ParseTriggerFile does, and with INVALID_ARGUMENT if it is empty.
// Blocks on the disk.
absl::StatusOr<std::vector<TriggerRule>> ReadTriggerFile(const std::string& path);

}  // namespace neurontrace
