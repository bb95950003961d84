// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace neurontrace {
namespace {

TEST(JsonWriter, SetsCommasAndColons) {
  JsonWriter out;
  out.Open('{').Member("a", 1).Key("b").Open('[').Value("x").Open('{').Close('}').Value(true);
  out.Close(']').Member("c", std::vector<std::string>{"y", "z"}).Key("d").Json("null").Close('}');
  EXPECT_EQ(out.Take(), R"({"a":1,"b":["x",{},true],"c":["y","z"],"d":null})");
}

TEST(JsonWriter, SetsBlanksAndLinesWhereAsked) {
  JsonWriter out(JsonWriter::Style::kSpaced);
  out.Open('{').Space("\n  ").Member("a", UINT64_MAX).Member("b", INT64_MIN).Space("\n  ");
  out.Key("c").Open('[').Close(']').Space("\n").Close('}');
  EXPECT_EQ(out.Take(),
            "{\n  \"a\": 18446744073709551615, \"b\": -9223372036854775808,\n  \"c\": []\n}");
}

TEST(JsonWriter, EscapesTextAndRepairsWhatIsNotUtf8) {
  JsonWriter out;
  out.Open('{').Member("k\"", "\x01\n\xff\u00e9\\").Close('}');
  EXPECT_EQ(out.Take(), "{\"k\\\"\":\"\\u0001\\n?\u00e9\\\\\"}");
}

TEST(JsonWriter, WritesAnotherValueAfterTake) {
  JsonWriter out;
  out.Open('{').Member("a", 1).Close('}').Space("\n");
  EXPECT_EQ(out.Take(), R"({"a":1})");
  out.Open('[').Value(2).Close(']');
  EXPECT_EQ(out.Take(), "[2]");
}

}  // namespace
}  // namespace neurontrace
