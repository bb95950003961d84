// SPDX-License-Identifier: Apache-2.0
// Tokens to attribute values, and which nested texts count as JSON.
#include "agent/source/framework/json_scalar.h"

#include <gtest/gtest.h>

#include <bit>

namespace neurontrace {
namespace {

TEST(JsonScalar, ReadsEachKind) {
  const auto expect = [](std::string_view token, ValueType type, uint64_t bits,
                         std::string_view text = {}) {
    SCOPED_TRACE(token);
    const auto got = ParseJsonScalar(token);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->type, type);
    EXPECT_EQ(got->value.bits, bits);
    EXPECT_EQ(got->value.text, text);
  };
  expect("null", ValueType::kNull, 0);
  expect("true", ValueType::kBool, 1);
  expect("false", ValueType::kBool, 0);
  expect("0", ValueType::kUint, 0);
  expect("18446744073709551615", ValueType::kUint, UINT64_MAX);
  expect("-1", ValueType::kInt, UINT64_MAX);
  expect("-9223372036854775808", ValueType::kInt, uint64_t{1} << 63);
  expect("0.5", ValueType::kDouble, std::bit_cast<uint64_t>(0.5));
  expect("1e+100", ValueType::kDouble, std::bit_cast<uint64_t>(1e100));
  expect("NaN", ValueType::kString, 0, "NaN");
  expect("-Infinity", ValueType::kString, 0, "-Infinity");
  // Kept to the letter, because no number type would give the same text back.
  for (const char* raw :
       {"-0", "1.0", "0.50", "1E5", "1e100", "18446744073709551616", "-9223372036854775809",
        "1e999", "0.1000000000000000055511151231257827"}) {
    expect(raw, ValueType::kJson, 0, raw);
  }
}

TEST(JsonScalar, RejectsInvalidJson) {
  for (const char* token : {"", "nul", "True", "nan", "inf", "+1", "01", "1.", ".5", "1e", "0x1",
                            "--1", "1 2", "Infinit"}) {
    EXPECT_FALSE(ParseJsonScalar(token).has_value()) << token;
  }
}

TEST(CheckJson, TakesWellFormedTextAsItIs) {
  std::string rewritten = "left over";
  for (const char* text : {"[]", "{}", "[[8, 2], [], \"a\\u00e9\\n\"]",
                           " {\"a\" : {\"b\":[1,-2e3]}} ", "\"x\"", "12", "[true,false,null]"}) {
    EXPECT_TRUE(CheckJson(text, rewritten)) << text;
    EXPECT_TRUE(rewritten.empty()) << text;
  }
  EXPECT_TRUE(CheckJson(std::string(64, '[') + std::string(64, ']'), rewritten));
}

TEST(CheckJson, PutsNonFiniteNumbersBetweenQuotes) {
  std::string rewritten;
  EXPECT_TRUE(CheckJson("[1, NaN, {\"Infinity\": -Infinity}]", rewritten));
  EXPECT_EQ(rewritten, "[1, \"NaN\", {\"Infinity\": \"-Infinity\"}]");
}

TEST(CheckJson, JoinsMultilineText) {
  std::string rewritten;
  EXPECT_TRUE(CheckJson("[\n  1,\t{\"a b\": \"c \\\" \\\\\",\r\n \"d\" : NaN}\n]", rewritten));
  EXPECT_EQ(rewritten, "[1,{\"a b\":\"c \\\" \\\\\",\"d\":\"NaN\"}]");
}

TEST(CheckJson, RefusesMalformedText) {
  std::string rewritten;
  for (const char* text :
       {"", "[", "]", "[1 2]", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{\"a\":1,}", "[1}",
        "{\"a\":1]", "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\n\"", "[1] 2", "[foo]", "[nan]"}) {
    EXPECT_FALSE(CheckJson(text, rewritten)) << text;
  }
  EXPECT_FALSE(CheckJson(std::string(65, '[') + std::string(65, ']'), rewritten));
  EXPECT_FALSE(CheckJson(std::string(1'000'000, '['), rewritten));
}

}  // namespace
}  // namespace neurontrace
