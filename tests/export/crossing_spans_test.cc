// SPDX-License-Identifier: Apache-2.0
// Goal: spans whose stop lies in a later chunk stand where they stop, whatever the stop brings, and
// neither a stop without attributes nor one that never comes takes the room of others. Method:
// captures in memory, exported; that a format writes a span in time is seen from its place in the
// file.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/export/export_fixture.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CrossingSpans : public ExportFixture {
 protected:
  // Enough of them, and over a long enough time, that they are of several batches.
  void AddTicks(uint32_t stream) {
    for (uint64_t i = 0; i < 40'000; ++i) {
      script_.Instant("tick", kBase + 200 + i * 1'000, 0, 8);
      if (i % 4'000 == 3'999) Close(stream);
    }
  }
  void AddCrossing(uint32_t stream) {
    script_.Start("crossing", kBase, 9, 7);
    Close(stream);
    script_.Stop("crossing", kBase + 100, 9, 7);
    Close(stream);
  }
  static void ExpectAmongTheTicks(const std::string& text) {
    const size_t crossing = text.find("\"crossing\"");
    ASSERT_NE(crossing, std::string::npos);
    EXPECT_NE(text.find("\"tick\"", crossing), std::string::npos) << "it is at the end";
  }
};

TEST_F(CrossingSpans, WithABareStopStandWhereTheyStop) {
  const uint32_t stream = AddCore("i-a", 1, 0, 4);
  AddCrossing(stream);
  AddTicks(stream);
  for (const char* format : {"json", "chrome-json"}) {
    SCOPED_TRACE(format);
    ExpectAmongTheTicks(Export(format));
    EXPECT_THAT(summary_.warnings, IsEmpty());
  }
}

TEST_F(CrossingSpans, UnstoppedSpansDoNotWaitAndAreCounted) {
  const uint32_t stream = AddCore("i-a", 1, 0, 4);
  AddCrossing(stream);
  source_.Lose(stream, 1);
  AddTicks(stream);
  for (const char* format : {"json", "chrome-json", "xspace"}) {
    SCOPED_TRACE(format);
    const std::string text = Export(format);
    if (format != std::string("xspace")) ExpectAmongTheTicks(text);
    EXPECT_THAT(summary_.warnings,
                ElementsAre(HasSubstr("cannot be read"),
                            "1 spans are shown without the attributes of their stops, which are "
                            "missing"));
  }
}

// What a window leaves out is missing without a word: docs/formats/derived.md, "Windows".
TEST_F(CrossingSpans, ThatLeaveTheWindowAreNotCounted) {
  const uint32_t stream = AddCore("i-a", 1, 0, 4);
  AddCrossing(stream);
  for (const char* format : {"json", "chrome-json", "xspace"}) {
    EXPECT_THAT(Export(format, {.filter = {.window_end_ns = kBase + 50}}), HasSubstr("crossing"));
    EXPECT_THAT(summary_.warnings, IsEmpty()) << format;
  }
}

TEST_F(CrossingSpans, WithBareStopsTakeNobodysRoom) {
  constexpr uint64_t kAtOnce = 1'000;
  constexpr uint64_t kChunks = 70;  // more than 65,536 in all
  const uint32_t stream = AddCore("i-a", 1, 0, 4);
  for (uint64_t chunk = 0; chunk <= kChunks; ++chunk) {
    const uint64_t at_ns = kBase + chunk * 10'000'000;
    for (uint64_t i = kAtOnce; chunk > 0 && i > 0; --i) {
      script_.Stop("bare", at_ns - i, chunk * kAtOnce - i + 1, 7);
    }
    for (uint64_t i = 0; chunk < kChunks && i < kAtOnce; ++i) {
      script_.Start("bare", at_ns + i, (chunk + 1) * kAtOnce - i, 7);
    }
    Close(stream);
  }
  const uint64_t end_ns = kBase + (kChunks + 1) * 10'000'000;
  script_.Start("last", end_ns, 1, 7);
  Close(stream);
  script_.Stop("last", end_ns + 5, 1, 7, {{"said_at_last", uint64_t{1}}});
  Close(stream);
  for (const char* format : {"json", "chrome-json", "xspace"}) {
    EXPECT_NE(Export(format).find("said_at_last"), std::string::npos) << format;
    EXPECT_THAT(summary_.warnings, IsEmpty()) << format;
    EXPECT_EQ(summary_.counts.spans, kChunks * kAtOnce + 1);
  }
}

}  // namespace
}  // namespace neurontrace
