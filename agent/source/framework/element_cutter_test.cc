// SPDX-License-Identifier: Apache-2.0
// Files are cut into their parts alike, however their bytes arrive; memory stays bounded.
#include "agent/source/framework/element_cutter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "lib/base/status.h"

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
      case Kind::kDamaged:
        lines.push_back("damaged " + std::string(piece->key));
        break;
      case Kind::kStray:
        lines.emplace_back("stray");
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

TEST(ElementCutter, TruncatedFilesYieldCompleteElements) {
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

TEST(ElementCutter, DetectsNonTraceFile) {
  EXPECT_THAT(Cut("hello"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{a:1}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\" 1}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\":}"), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"traceEvents\":[1,}"), ElementsAre("1", "truncated"));
}

TEST(ElementCutter, ANulIsACharacterAndNotTheEnd) {
  using namespace std::string_view_literals;
  EXPECT_THAT(Cut("[{\"a\":1},\n\0{\"b\":2,\"ph\":1},{\"c\":3}]"sv),
              ElementsAre("{\"a\":1}", "stray", "{\"b\":2,\"ph\":1}", "{\"c\":3}", "end"));
  EXPECT_THAT(Cut("[{\"a\":1},\0\0"sv), ElementsAre("{\"a\":1}", "truncated"));
  EXPECT_THAT(Cut("\0{\"a\":1}"sv), ElementsAre("malformed"));
  EXPECT_THAT(Cut("{\"a\":1,\0\"b\":2}"sv), ElementsAre("a=1", "malformed"));
  EXPECT_THAT(Cut("{\"a\"\0:1}"sv), ElementsAre("malformed"));
}

// What looks like the end, in names whose quotation marks are not escaped; brackets too many.
TEST(ElementCutter, FalseEndMarkerIsNotEndIfElementsFollow) {
  const std::string good = R"({"ph":"X","name":"good"})";
  for (const std::string name :
       {R"(done"}]}(12): run)", R"(done"}](12): run)", R"(done"]}]}}: run)"}) {
    for (const std::string between : {",", ",\n", ", "}) {
      const std::string element = R"({"ph":"X","name":")" + name + R"(","args":{"a":{"b":1}}})";
      const std::string list =
          "[" + good + between + element + between + good + between + good + "]";
      for (const std::string& text : {list, R"({"traceEvents":)" + list + R"(,"after":1})"}) {
        const auto lines = Cut(text);
        EXPECT_EQ(std::count(lines.begin(), lines.end(), good), 3) << text;
        EXPECT_EQ(lines.back(), "end") << text;
        EXPECT_EQ(Cut(text, 1), lines) << text;
      }
    }
  }
  EXPECT_THAT(Cut("[" + good + ",\nx]y\n" + good + "]"), ElementsAre(good, "stray", good, "end"));
}

// Elements that were cut while they were written, before sound ones.
TEST(ElementCutter, ABracketThatIsMissingCostsNoElementThatFollows) {
  const std::string good = R"({"ph":"X","name":"good","args":{"dims":[[1],{"a":[2]}]}})";
  const std::string whole =
      R"({"ph":"X","args":{"dims":[1,2],"list":[{"a":"b"},[3]],"name":"a"},"ts":1})";
  for (size_t bytes = 2; bytes < whole.size(); ++bytes) {
    for (const std::string between : {",", ",\n", "\n"}) {
      const std::string list =
          "[" + good + between + whole.substr(0, bytes) + between + good + between + good + "]";
      for (const std::string& text : {list, R"({"traceEvents":)" + list + R"(,"after":1})"}) {
        const auto lines = Cut(text);
        EXPECT_EQ(std::count(lines.begin(), lines.end(), good), 3) << text;
        EXPECT_EQ(Cut(text, 1), lines) << text;
      }
    }
  }
}

TEST(ElementCutter, ASecondTraceBehindTheFirstIsNotReadAsItsPart) {
  for (const std::string second :
       {R"({"traceEvents":[{"ph":"X"}]})", R"([{"ph":"X"}])", R"({"a":1})"}) {
    for (const size_t step : {1, 1'000}) {
      const std::string text = R"({"traceEvents":[{"ph":"i"}]} )" + second;
      ElementCutter cutter(Feed(text, step));
      ElementCutter::Piece piece;
      for (int i = 0; i < 1'000 && piece.kind != Kind::kEnd; ++i) piece = *cutter.Next();
      for (int i = 0; i < 1'000 && !*cutter.Drain(); ++i) {
      }
      EXPECT_EQ(cutter.bytes_behind(), second.size());
      EXPECT_EQ(cutter.has_elements_behind(), second.find("ph") != std::string::npos);
    }
  }
}

// Elements as different writers write them, sound ones.
std::string ValidElement(int number, int style) {
  const std::string n = std::to_string(number);
  switch (style) {
    case 0:
      return R"({"ph": "X", "cat": "cpu_op", "name": "op)" + n + R"(", "args": {}})";
    case 1:
      return R"({"name":"[{\"a\": 1}, {\"b\": 2}]","args":{"l":[{"a":1}, {"b":[)" + n +
             R"(]}]},"ph":"X"})";
    case 2:
      return "{\n  \"ph\": \"X\",\n  \"name\": \"},{\",\n  \"args\": {\n   \"x\": " + n +
             "\n  }\n }";
    default:
      return R"({"args":{"stack":["a","{"],"n":)" + n + R"(},"name":"t\\","ph":"i"})";
  }
}

// As names and bytes go wrong: a text for `@`, or with less than the element had.
std::string DamagedElement(int kind) {
  switch (kind % 10) {
    case 0:
      return R"({"ph":"X","name":"5" disk(3): read","args":{}})";
    case 1:
      return R"({"ph":"X","name":"{"device": "npu", "x": [1, 2]}(12): run","ts":1})";
    case 2:
      return R"({"name":"a"b"c","ph":"X","ts":1})";
    case 3:
      return R"({"ph":"X","name":"no end,"ts":1})";
    case 4:
      return R"({"ph":"X","args":{"a":[1,2},"name":"b"})";
    case 5:
      return R"({"ph":"X","args":{"a":1,"name":"b"})";
    case 6:
      return R"({"ph":"X","name":"last value without its end})";
    case 7:
      return "{\"ph\":\"X\",\"name\":\"x\"" + std::string(20, '\0') + "\"y\"}";
    case 8:
      return R"({"ph":"X","name":"a","b")";
    default:
      return R"({"name":"},{"(1): x","ph":"X"})";
  }
}

TEST(ElementCutter, ADamagedElementCostsNoOther) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    std::mt19937 random(seed);
    const bool is_array = random() % 4 == 0;
    const int style = static_cast<int>(random() % 4);
    std::string text = is_array ? "[" : R"({"schemaVersion":1,"traceEvents":[)";
    std::vector<std::string> sound;
    size_t damaged = 0;
    const int count = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < count; ++i) {
      const bool is_damaged = random() % 3 == 0;
      damaged += is_damaged;
      if (!is_damaged) sound.push_back(ValidElement(i, style));
      // A string without an end that is the file's last is taken for a file that was cut.
      const uint32_t kinds = i + 1 == count ? 6 : 10;
      text += (i == 0              ? ""
               : random() % 2 == 0 ? ","
                                   : ",\n") +
              (is_damaged ? DamagedElement(static_cast<int>(random() % kinds)) : sound.back());
    }
    text += is_array ? "]\n" : R"(],"traceName":"x","deviceProperties":[{"id":[1]}],"last":5})";
    SCOPED_TRACE(text);
    std::vector<std::string> lines = Cut(text);
    EXPECT_EQ(Cut(text, 1), lines);
    EXPECT_EQ(Cut(text, 7, {.window_bytes = 1}), lines);
    const ElementCutter::Options small{.window_bytes = 16, .piece_bytes_max = 64};
    EXPECT_EQ(Cut(text, 1, small), Cut(text, 1'000'000, small));
    if (!is_array) {
      ASSERT_GE(lines.size(), 5u);
      EXPECT_EQ(lines[0], "schemaVersion=1");
      EXPECT_EQ(lines[lines.size() - 2], "last=5");
      lines.erase(lines.begin());
      lines.erase(lines.end() - 4, lines.end() - 1);
    }
    EXPECT_EQ(lines.back(), "end");
    lines.pop_back();
    EXPECT_EQ(std::erase(lines, "damaged "), damaged);
    EXPECT_EQ(lines, sound);
    if (HasFailure()) return;
  }
}

// Any bytes give the same pieces however they arrive, and as much work as they are long.
TEST(ElementCutter, GarbageIsCutEquallyForAnyChunking) {
  const std::vector<std::string> words = {"{",      "}",
                                          "[",      "]",
                                          ",",      ":",
                                          "\"",     "{\"ph\":1",
                                          "\n",     "\"traceEvents\":[",
                                          "x",      " ",
                                          "\\",     "},{\"a\":1",
                                          "\"ph\"", "{\"ph\":\"X\"},"};
  for (uint32_t seed = 0; seed < 1'000; ++seed) {
    std::mt19937 random(seed);
    std::string text = random() % 2 == 0 ? "[" : R"({"traceEvents":[)";
    for (size_t i = random() % 60; i > 0; --i) text += words[random() % words.size()];
    const ElementCutter::Options small{.window_bytes = 16, .piece_bytes_max = 32};
    ASSERT_EQ(Cut(text, 1, small), Cut(text, 1'000'000, small)) << text;
    ASSERT_EQ(Cut(text, 3), Cut(text)) << text;
  }
}

TEST(ElementCutter, BracketsTooManyOrMissingBetweenElementsCostNoElement) {
  const std::string a = R"({"ph":"X","n":1})";
  const std::string b = R"({"ph":"X","n":2})";
  const std::string head = R"({"traceEvents":[)";
  EXPECT_THAT(Cut(head + a + "}," + b + R"(],"m":1})"), ElementsAre(a, "stray", b, "m=1", "end"));
  EXPECT_THAT(Cut(head + a + "]," + b + R"(],"m":1})"), ElementsAre(a, "stray", b, "m=1", "end"));
  EXPECT_THAT(Cut(head + a + ":," + b + R"(],"m":1})"), ElementsAre(a, "stray", b, "m=1", "end"));
  EXPECT_THAT(Cut(head + a + "," + b + R"(,"m":1,"k":2})"),
              ElementsAre(a, b, "\"m\"", "m=1", "k=2", "end"))
      << "the list has no end";
  EXPECT_THAT(Cut(head + a + R"(,"ph":"X","n":3},)" + b + "]}"),
              ElementsAre(a, "\"ph\"", "stray", b, "end"))
      << "an element has no beginning";
  EXPECT_THAT(Cut("[" + a + "," + b + "}"), ElementsAre(a, b, "truncated"));
}

TEST(ElementCutter, ADamagedMemberCostsNoElement) {
  const std::string element = R"({"ph":"X","n":1})";
  EXPECT_THAT(Cut(R"({"info":{"host":"a"b"},"traceEvents" : [)" + element + "]}"),
              ElementsAre("damaged info", element, "end"));
  EXPECT_THAT(Cut(R"({"traceEvents":[)" + element + R"(],"info":{"host":"a"b"}})"),
              ElementsAre(element, "damaged info", "end"));
  EXPECT_THAT(Cut(R"({"info":{"host":"a"b"}})"), ElementsAre("malformed"));
}

TEST(ElementCutter, NonElementIsNoStart) {
  // Objects of a list inside the damaged element have no phase.
  EXPECT_THAT(Cut(R"([{"ph":"5"x","args":[{"a":1},{"b":2}]},{"ph":"X"}])"),
              ElementsAre("damaged ", R"({"ph":"X"})", "end"));
  EXPECT_THAT(
      Cut(R"([{"nrta_seq_id":5"},{"nrta_seq_id":6}])", 1'000, {.element_key = "nrta_seq_id"}),
      ElementsAre("damaged ", R"({"nrta_seq_id":6})", "end"));
}

TEST(ElementCutter, TheBytesBehindTheEndAreCounted) {
  using namespace std::string_view_literals;
  for (const size_t step : {1, 100'000}) {
    ElementCutter cutter(Feed("[1] \0\n{\"a\":2}"sv, step));
    while (cutter.Next()->kind < Kind::kEnd) {
    }
    while (!*cutter.Drain()) {
    }
    EXPECT_EQ(cutter.bytes_behind(), 7u);
  }
}

TEST(ElementCutter, ByteOrderMarkAndBlanksAreSkipped) {
  EXPECT_THAT(Cut("\xef\xbb\xbf \n{\"a\":1}"), ElementsAre("a=1", "end"));
}

TEST(ElementCutter, SecondTraceEventsIsReadToo) {
  std::string many = "{";
  for (int i = 0; i < 100'000; ++i) many += "\"traceEvents\":[],";
  EXPECT_THAT(Cut(many + "\"traceEvents\":[7]}"), ElementsAre("7", "end"));
}

TEST(ElementCutter, SkipsOversizedParts) {
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

TEST(ElementCutter, OversizedPartsEndEquallyForAnyChunking) {
  const ElementCutter::Options options{.window_bytes = 1, .piece_bytes_max = 8};
  for (const char* next : {R"("abc")", "[2,3]", R"({"b":[]})"}) {
    const std::string text = std::string("[111111111111") + next + ",1]";
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

TEST(ElementCutter, ReadsInputOncePerCallAndContinues) {
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
