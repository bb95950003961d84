// SPDX-License-Identifier: Apache-2.0
// Where JSON values end, and where they stop being JSON, however their bytes arrive.
#include "agent/source/framework/json_structure.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

namespace neurontrace {
namespace {

// "end 5", "damaged 3", "more".
std::string Scan(std::string_view text, size_t step, std::string_view key = {}) {
  JsonStructure structure;
  structure.BeginValue(key);
  size_t at = 0;
  for (size_t end = 0; at < text.size();) {
    end = std::min(text.size(), end + step);
    const JsonStructure::Outcome outcome = structure.Scan(text.data(), at, end);
    if (outcome == JsonStructure::Outcome::kEnd) {
      return fmt::format("end {}{}", at, structure.has_key() ? " key" : "");
    }
    if (outcome == JsonStructure::Outcome::kDamaged) {
      return fmt::format("damaged {} {}", at, structure.token_begin());
    }
  }
  return "more";
}

TEST(JsonStructure, FindsTheEndOrTheDamage) {
  const std::map<std::string, std::string> cases = {
      {R"({"a":[1,{"b":null}]} ,)", "end 20"},
      {R"("a\"]\\",)", "end 8"},
      {"12,", "end 2"},
      {"true]", "end 4"},
      {"{},", "end 2"},
      {"[[],[[]]]", "end 9"},
      {R"({"a":1,})", "end 8"},  // put up with
      {R"({"a":})", "end 6"},    // for the parser to judge
      {R"([1,,nope,-])", "end 11"},
      {R"({"a":"5" b","c":1})", "damaged 9 5"},
      {R"({"a":"b "c"})", "damaged 9 5"},
      {R"({"a":x"b"})", "damaged 6 5"},
      {R"({"a" 1})", "damaged 5 1"},
      {R"({"a","b":1})", "damaged 4 1"},
      {R"({"a":[1}})", "damaged 7 6"},
      {R"({"a":1],)", "damaged 6 5"},
      {R"({"a":{"b":1},{"c":2}})", "damaged 13 10"},
      {R"([1:2])", "damaged 2 1"},
      {R"([1 2])", "damaged 3 1"},
      {"]", "damaged 0 0"},
      {":", "damaged 0 0"},
      {R"({"a":"b)", "more"},
  };
  for (const auto& [text, expected] : cases) {
    for (const size_t step : {1, 2, 1'000}) EXPECT_EQ(Scan(text, step), expected) << text;
  }
}

TEST(JsonStructure, FindsAKeyOfTheObjectItself) {
  for (const size_t step : {1, 3, 1'000}) {
    EXPECT_EQ(Scan(R"({"a":1,"ph":"X"},)", step, "ph"), "end 16 key");
    EXPECT_EQ(Scan(R"({"a":{"ph":1},"phase":2,"p":"ph"},)", step, "ph"), "end 33");
  }
}

TEST(JsonStructure, NestingIsLimited) {
  const std::string deep(JsonStructure::kDepthMax + 1, '[');
  EXPECT_EQ(Scan(deep, 10'000), fmt::format("damaged {} 0", JsonStructure::kDepthMax));
}

TEST(JsonStructure, BeginsBehindAMember) {
  JsonStructure structure;
  structure.BeginAfterMember();
  const std::string_view text = R"( , "a": [1], "b": {} } rest)";
  size_t at = 0;
  EXPECT_EQ(structure.Scan(text.data(), at, text.size()), JsonStructure::Outcome::kEnd);
  EXPECT_EQ(text.substr(at), " rest");
}

}  // namespace
}  // namespace neurontrace
