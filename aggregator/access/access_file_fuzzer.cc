// SPDX-License-Identifier: Apache-2.0
// Any text is an access file or has problems that say so, a bounded number of them; and nobody is
// somebody for showing nothing.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "aggregator/access/access_rules.h"
#include "trace/access_limits.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace neurontrace;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto rules = ParseAccessFile(text, "f");
  if (!rules.ok()) {
    const auto words = rules.status().message();
    const auto lines = static_cast<size_t>(std::count(words.begin(), words.end(), '\n')) + 1;
    if (words.empty() || lines > limits::kAccessProblemsMax) std::abort();
    return 0;
  }
  if (rules->size() > limits::kAccessRulesMax) std::abort();
  if (rules->ByCertificate({}) || rules->ByToken("")) std::abort();
  return 0;
}
