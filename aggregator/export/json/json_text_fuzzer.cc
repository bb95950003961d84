// SPDX-License-Identifier: Apache-2.0
// Any text as what a chunk calls JSON, and as the keys and values of an object that is made of
// them. simdjson is asked whether it is some: what is copied into a trace as it is has to be.
#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "aggregator/export/json/json_members.h"
#include "aggregator/export/json/json_text.h"

namespace neurontrace {
namespace {

void Check(bool good, std::string_view what, std::string_view text) {
  if (good) return;
  fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
          static_cast<int>(text.size()), text.data());
  abort();
}

simdjson::error_code ErrorOf(std::string_view text) {
  simdjson::dom::parser parser;
  return parser.parse(simdjson::padded_string(text)).error();
}

// Numbers that no double holds are JSON (RFC 8259, section 6), and simdjson wants none of them.
void CheckText(std::string_view text) {
  const simdjson::error_code error = ErrorOf(text);
  if (IsJson(text)) {
    Check(error == simdjson::SUCCESS || error == simdjson::NUMBER_ERROR, "called JSON, and is none",
          text);
  } else {
    // It takes what is nested deeper.
    const auto opened =
        std::count_if(text.begin(), text.end(), [](char c) { return c == '[' || c == '{'; });
    Check(error != simdjson::SUCCESS || opened >= 64, "is JSON, and not called so", text);
  }
}

// Lines are keys, taken or renamed, and the values of the next ones.
void CheckObject(std::string_view lines) {
  std::string members;
  JsonMembers keys(members);
  size_t count = 0;
  std::string_view value;
  while (!lines.empty() && count < 16) {
    const std::string_view key = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(key.size() + 1, lines.size()));
    keys.AppendFreeKey(key, "stop_");
    AppendAsJsonString(value, members);
    value = key;
    ++count;
  }
  if (count == 0) return;
  const std::string object = "{" + members.substr(1) + "}";
  simdjson::dom::parser parser;
  simdjson::dom::object parsed;
  Check(parser.parse(simdjson::padded_string(object)).get(parsed) == simdjson::SUCCESS,
        "made an object that is none", object);
  std::set<std::string_view> names;
  for (const auto& field : parsed) names.insert(field.key);
  Check(names.size() == count, "two members have one key", object);
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  neurontrace::CheckText(text);
  neurontrace::CheckObject(text);
  return 0;
}
