// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/trace/trigger_rule.h"

// The file of rules that begin captures by themselves, as TOML: a section for each rule, named like
// it. docs/user/triggers.md has the keys. A file is good or bad as a whole.
namespace neurontrace {

// The rules in the order of the file. Fails with INVALID_ARGUMENT, a line
// "PATH:LINE:COLUMN: [NAME]: WORDS" for each problem; `text` may be anything. Pure.
absl::StatusOr<std::vector<TriggerRule>> ParseTriggerFile(std::string_view text,
                                                          const std::string& path);

// Reads and parses. NOT_FOUND or FAILED_PRECONDITION where it cannot be read or is no regular file,
// else as ParseTriggerFile, which an empty file fails here. Blocks on the disk.
absl::StatusOr<std::vector<TriggerRule>> ReadTriggerFile(const std::string& path);

}  // namespace neurontrace
