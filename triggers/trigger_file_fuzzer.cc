// SPDX-License-Identifier: Apache-2.0
// Any text is a rule file or has problems that say so; the rules of a good one are good one by one.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "trace/trigger_limits.h"
#include "triggers/trigger_file.h"
#include "triggers/trigger_rule_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const TriggerFile file =
      ParseTriggerFile(std::string_view(reinterpret_cast<const char*>(data), size));
  if (file.problems.size() > limits::kTriggerProblemsMax) std::abort();
  const std::string words = DescribeProblems("file", file);
  if (words.empty() != file.problems.empty()) std::abort();
  if (!file.problems.empty()) return 0;
  if (file.rules.size() > limits::kTriggerRulesMax) std::abort();
  for (const TriggerRule& rule : file.rules) {
    if (!CheckTriggerRule(rule).ok()) std::abort();
  }
  return 0;
}
