// SPDX-License-Identifier: Apache-2.0
// Which spelling of a scalar is kept how: table-driven.
#include "agent/source/neuron/decode/json_text.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

std::string Padded(std::string_view text) { return std::string(text) + std::string(64, '\0'); }

ValueType Classify(std::string_view text, uint64_t& bits) {
  const std::string padded = Padded(text);
  return ClassifyNumber(padded.data(), text.size(), bits);
}

TEST(JsonTextTest, KeepsCanonicalIntegersAsIntegers) {
  uint64_t bits = 0;
  for (const uint64_t value :
       {uint64_t{0}, uint64_t{7}, uint64_t{12345678}, uint64_t{1755115507555000000},
        uint64_t{9007199254740993}, uint64_t{18446744073709551615u}}) {
    EXPECT_EQ(Classify(std::to_string(value), bits), ValueType::kUint) << value;
    EXPECT_EQ(bits, value);
  }
  for (const int64_t value : {int64_t{-1}, int64_t{-4294967296}, INT64_MIN}) {
    EXPECT_EQ(Classify(std::to_string(value), bits), ValueType::kInt) << value;
    EXPECT_EQ(static_cast<int64_t>(bits), value);
  }
}

TEST(JsonTextTest, KeepsDoublesOnlyIfTextRoundTrips) {
  uint64_t bits = 0;
  EXPECT_EQ(Classify("0.1", bits), ValueType::kDouble);
  EXPECT_EQ(std::bit_cast<double>(bits), 0.1);
  EXPECT_EQ(Classify("-2.5", bits), ValueType::kDouble);
  EXPECT_EQ(Classify("1e+300", bits), ValueType::kDouble);
}

TEST(JsonTextTest, KeepsUnusualNumbersAsTheyAreSpelled) {
  uint64_t bits = 0;
  for (const char* text : {"1.0", "1e5", "1E+300", "-0.0", "0.10", "18446744073709551617",
                           "-9223372036854775809", "1e999", "123456789012345678901234567890"}) {
    EXPECT_EQ(Classify(text, bits), ValueType::kJson) << text;
  }
}

TEST(JsonTextTest, RejectsNonNumbers) {
  uint64_t bits = 0;
  for (const char* text : {"", "-", "01", "1.", ".5", "1e", "1e+", "0x10", "1_0", "--1", "+1",
                           "Infinity", "12345678a", "1 2"}) {
    EXPECT_EQ(Classify(text, bits), ValueType::kNull) << text;
  }
}

TEST(JsonTextTest, FindsBackslashesOnlyInsideTheText) {
  for (size_t size = 0; size < 20; ++size) {
    std::string text(size, 'x');
    EXPECT_FALSE(HasBackslash(Padded(text + "\\").data(), size)) << size;
    for (size_t at = 0; at < size; ++at) {
      text.assign(size, 'x');
      text[at] = '\\';
      EXPECT_TRUE(HasBackslash(Padded(text).data(), size)) << size << " at " << at;
    }
  }
}

TEST(JsonTextTest, DecodesEscapes) {
  std::string out = "kept ";
  EXPECT_TRUE(
      AppendUnescaped(R"(caf\u00e9 \"q\" \\ \/ \b\f\n\r\t \u0001 \u20AC \ud83d\ude00!)", out));
  EXPECT_EQ(out, "kept café \"q\" \\ / \b\f\n\r\t \x01 € 😀!");
}

TEST(JsonTextTest, RefusesEscapesWithoutMeaning) {
  for (const char* text : {R"(\x)", R"(\)", R"(\u12)", R"(\u12g4)", R"(\ud800)", R"(\udc00)",
                           R"(\ud800\u0041)", R"(\ud800x)", R"(\u+123)"}) {
    std::string out = "before";
    EXPECT_FALSE(AppendUnescaped(text, out)) << text;
    EXPECT_EQ(out, "before");
  }
}

TEST(JsonTextTest, DistinguishesLoneSurrogateFromBadEscape) {
  EXPECT_TRUE(EscapesAreWellFormed(R"(a \ud800 \n)"));
  EXPECT_FALSE(EscapesAreWellFormed(R"(a \x)"));
  EXPECT_FALSE(EscapesAreWellFormed(R"(a \)"));
  EXPECT_FALSE(EscapesAreWellFormed(R"(\u12)"));
}

}  // namespace
}  // namespace neurontrace
