// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "trace/trigger_rule.h"

// The file of rules that begin captures by themselves, in the INI format of the other files of
// neurontrace: a section for each rule, named like it, and in it lines `key = value`.
// docs/triggers.md has the keys. A file is good or bad as a whole.
namespace neurontrace {

struct TriggerFileProblem {
  size_t line = 0;    // from 1
  std::string rule;   // empty: of none
  std::string words;  // what is wrong, and how it is put right
};

struct TriggerFile {
  std::vector<TriggerRule> rules;            // in the order of the file; of use without problems
  std::vector<TriggerFileProblem> problems;  // at most limits::kTriggerProblemsMax
};

// Never fails but by its problems; `text` may be anything. Pure.
TriggerFile ParseTriggerFile(std::string_view text);

// One line a problem, "PATH:LINE: rule NAME: WORDS".
std::string DescribeProblems(const std::string& path, const TriggerFile& file);

// Reads and parses. NOT_FOUND or FAILED_PRECONDITION where it cannot be read or is no regular file,
// INVALID_ARGUMENT with DescribeProblems where it is not good. Blocks on the disk.
absl::StatusOr<std::vector<TriggerRule>> ReadTriggerFile(const std::string& path);

}  // namespace neurontrace
