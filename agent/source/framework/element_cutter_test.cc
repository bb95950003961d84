// SPDX-License-Identifier: Apache-2.0
// Files are cut into their parts alike, however their bytes arrive; memory stays bounded.
#include "agent/source/framework/element_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using Kind = ElementCutter::Kind;

// Gives `text` out in pieces of `step` bytes.
ElementCutter::Input Feed(std::string_view text, size_t step) {
  return [text, step](char* out, size_t size) mutable -> absl::StatusOr<size_t> {
    const size_t n = std::min({step, size, text.size()});
    memcpy(out, text.data(), n);
    text.remove_prefix(n);
    return n;
  };
}

// One line for each piece: "key=text" for a member, "text" for an element, the kind for others.
std::vector<std::string> Cut(std::string_view text, size_t step = 1'000'000,
                             const ElementCutter::Options& options = {}) {
  ElementCutter cutter(Feed(text, step), options);
  std::vector<std::string> lines;
  for (;;) {
    const auto piece = cutter.Next();
    EXPECT_TRUE(piece.ok());
    switch (piece->kind) {
      case Kind::kNotYet:
        break;
      case Kind::kMember:
        lines.push_back(std::string(piece->key) + "=" + std::string(piece->text));
        break;
      case Kind::kElement:
        lines.emplace_back(piece->text);
        break;
      case Kind::kOversized:
        lines.push_back("oversized " + std::string(piece->key));
        break;
      case Kind::kEnd:
        lines.emplace_back("end");
        return lines;
      case Kind::kTruncated:
        lines.emplace_back("truncated");
        return lines;
      case Kind::kMalformed:
        lines.emplace_back("malformed");
        return lines;
    }
  }
}

TEST(ElementCutter, CutsMembersAndElements) {
  EXPECT_THAT(Cut(R"({"a": 1, "b" : {"x": [1, "}"]},"traceEvents":[{"n":"a\"]"}, {} , 3],
                      "after": "t\\" } trailing)"),
              ElementsAre("a=1", R"(b={"x": [1, "}"]})", R"({"n":"a\"]"})", "{}", "3",
                          R"(after="t\\")", "end"));
}

TEST(ElementCutter, BytesMayArriveOneByOne) {
  const std::string_view text =
      R"({"schemaVersion":1,"traceEvents":[{"a":"\\\"","b":[[],{}]},{"c":-1.5e3}],"traceName":"x\"y"})";
  EXPECT_EQ(Cut(text, 1), Cut(text));
  EXPECT_EQ(Cut(text, 3), Cut(text));
  EXPECT_EQ(Cut(text, 3, {.window_bytes = 1}), Cut(text)) << "a window that has to grow";
}

TEST(ElementCutter, TopLevelArrayMayBeLeftOpen) {
  EXPECT_THAT(Cut("[{\"a\":1},{\"b\":2}]"), ElementsAre("{\"a\":1}", "{\"b\":2}", "end"));
  EXPECT_THAT(Cut("[{\"a\":1},\n"), ElementsAre("{\"a\":1}", "end"));
}

TEST(ElementCutter, CutFilesGiveWhatIsWhole) {
  EXPECT_THAT(Cut("{\"traceEvents\":[{\"a\":1},{\"b\""), ElementsAre("{\"a\":1}", "truncated"));
  EXPECT_THAT(Cut("{\"traceEvents\":[{\"a\":1}"), ElementsAre("{\"a\":1}", "truncated"));
  EXPECT_THAT(Cut("{\"traceEvents\":[]"), ElementsAre("truncated"));
  EXPECT_THAT(Cut("{\"a"), ElementsAre("truncated"));
  EXPECT_THAT(Cut("{\"a\""), ElementsAre("truncated"));
  EXPECT_THAT(Cut("{\"a\":"), ElementsAre("truncated"));
  EXPECT_THAT(Cut("{\"a\":12"), ElementsAre("truncated"));
  EXPECT_THAT(Cut(""), ElementsAre("truncated"));
  EXPECT_THAT(Cut("[{\"a\":\"x"), ElementsAre("truncated"));
}

TEST(ElementCutter, NoticesWhatIsNoTraceFile) {
  EXPECT_THAT(Cut("hello"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{a:1}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\" 1}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\":}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"traceEvents\":[1,}"), ElementsAre("1", "malformed"));
}

TEST(ElementCutter, ANulIsACharacterAndNotTheEnd) {
  using namespace std::string_view_literals;
  EXPECT_THAT(Cut("[{\"a\":1},\n\0{\"b\":2},{\"c\":3}]"sv),
              ElementsAre("{\"a\":1}", "\0"sv, "{\"b\":2}", "{\"c\":3}", "end"));
  EXPECT_THAT(Cut("[{\"a\":1},\0\0"sv), ElementsAre("{\"a\":1}", "truncated"));
  EXPECT_THAT(Cut("\0{\"a\":1}"sv), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\":1,\0\"b\":2}"sv), ElementsAre("a=1", "malformed"));
  EXPECT_THAT(Cut("{\"a\"\0:1}"sv), ElementsAre("malformed"));
}

TEST(ElementCutter, ByteOrderMarkAndBlanksAreSkipped) {
  EXPECT_THAT(Cut("\xef\xbb\xbf \n{\"a\":1}"), ElementsAre("a=1", "end"));
}

TEST(ElementCutter, SecondTraceEventsIsReadToo) {
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) many += "\"traceEvents\":[],";
  EXPECT_THAT(Cut(many + "\"traceEvents\":[7]}"), ElementsAre("7", "end"));
}

TEST(ElementCutter, OversizedPartsArePassedOver) {
  const std::string longest(limits::kFrameworkEventBytesMax - 2, 'x');
  const std::string text = "{\"a\":\"" + longest + "x\",\"traceEvents\":[\"" + longest +
                           "\",{\"b\":\"" + longest + "\"},{\"c\":1}]}";
  for (const size_t step : {size_t{4096}, size_t{100'000'000}}) {
    const auto lines = Cut(text, step);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(lines[0], "oversized a");
    EXPECT_EQ(lines[1].size(), limits::kFrameworkEventBytesMax);
    EXPECT_EQ(lines[2], "oversized ");
    EXPECT_EQ(lines[3], "{\"c\":1}");
    EXPECT_EQ(lines[4], "end");
  }
}

TEST(ElementCutter, OversizedPartsEndAtTheSamePlaceHoweverTheyArrive) {
  const ElementCutter::Options options{.window_bytes = 1, .piece_bytes_max = 8};
  for (const char* next : {R"("abc")", "[2,3]", R"({"b":[]})"}) {
    const std::string text = std::string("[xxxxxxxxxxxx") + next + ",1]";
    for (const size_t step : {1, 3, 1'000}) {
      EXPECT_THAT(Cut(text, step, options), ElementsAre("oversized ", next, "1", "end"))
          << text << " in steps of " << step;
    }
  }
}

TEST(ElementCutter, MemoryDoesNotGrowWithTheFile) {
  const std::string element = "{\"name\":\"" + std::string(100, 'n') + "\"},";
  size_t left = 1'000'000;
  bool first = true;
  ElementCutter cutter([&](char* out, size_t size) -> absl::StatusOr<size_t> {
    if (first) {
      first = false;
      *out = '[';
      return 1;
    }
    size_t n = 0;
    for (; left > 0 && n + element.size() <= size; --left, n += element.size()) {
      memcpy(out + n, element.data(), element.size());
    }
    return n;
  });
  size_t elements = 0;
  for (Kind kind = Kind::kNotYet; kind < Kind::kEnd;) {
    kind = cutter.Next()->kind;
    elements += kind == Kind::kElement;
  }
  EXPECT_EQ(elements, 1'000'000u);
  EXPECT_EQ(cutter.position(), 1 + 1'000'000 * element.size());
  EXPECT_LT(cutter.window_bytes_max(), 512u << 10);
}

TEST(ElementCutter, ACallAsksItsInputOnceAndGoesOnWhereItWas) {
  const std::string blanks(1'000, ' ');
  const std::string text = "\xef\xbb\xbf" + blanks + "{" + blanks + "\"key\"" + blanks + ":" +
                           blanks + "7" + blanks + ",,,,\"traceEvents\":[\"" +
                           std::string(1'000, 'x') + "\"" + blanks + "]}";
  size_t asked = 0;
  size_t calls = 0;
  const auto feed = Feed(text, 3);
  // Every other time nothing comes.
  ElementCutter cutter([&](char* out, size_t size) -> absl::StatusOr<std::optional<size_t>> {
    if (++asked % 2 == 0) return std::nullopt;
    return feed(out, size);
  });
  std::vector<std::string> texts;
  for (Kind kind = Kind::kNotYet; kind < Kind::kEnd;) {
    const auto piece = cutter.Next();
    ASSERT_TRUE(piece.ok());
    EXPECT_LE(asked, ++calls);
    kind = piece->kind;
    if (kind != Kind::kNotYet) texts.emplace_back(piece->text);
  }
  EXPECT_THAT(texts, ElementsAre("7", "\"" + std::string(1'000, 'x') + "\"", ""));
}

TEST(ElementCutter, ErrorsOfTheInputComeThrough) {
  ElementCutter cutter([](char*, size_t) -> absl::StatusOr<size_t> { return DataLoss("broken"); });
  EXPECT_EQ(cutter.Next().status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace neurontrace
