// SPDX-License-Identifier: Apache-2.0
// Goal: processes and rows are bounded whatever the capture holds, and what is beyond them is still
// there. Method: a framework's file of more threads than there can be rows, each of a process of
// its own; the names in the exports are counted.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "aggregator/export/rows/row_model.h"
#include "tests/export/export_fixture.h"
#include "tests/export/xspace_reader.h"

namespace neurontrace {
namespace {

constexpr uint64_t kThreads = RowModel::kRowsMax + 300;

class RowLimits : public ExportFixture {
 protected:
  void AddThreads() {
    const uint32_t file = AddFile("i-a", "worker0.pt.trace.json");
    for (uint64_t i = 0; i < kThreads; ++i) {
      EventScript::Event event{"kernel", Phase::kComplete, kBase + i * 10, 0, i};
      event.attributes = {{"name", std::string("work"), KeyScope::kTop},
                          {"pid", i, KeyScope::kTop},
                          {"dur_ns", uint64_t{5}, KeyScope::kTop}};
      script_.Add(event);
      if (i % 4'000 == 3'999) Close(file);
    }
    Close(file);
  }
};

size_t Count(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

TEST_F(RowLimits, BeyondThemNoProcessIsAddedAndNoEventIsLost) {
  AddThreads();
  const std::string text = Export("chrome-json");
  EXPECT_EQ(Count(text, R"("name":"work")"), kThreads);
  EXPECT_EQ(Count(text, R"("name":"thread_name")"), RowModel::kRowsMax + 1);
  // One for what shares a row.
  EXPECT_LE(Count(text, R"("name":"process_name")"), RowModel::kRowsMax + 1);
  EXPECT_EQ(Count(text, R"("name":"further rows-framework")"), 1u);
}

TEST_F(RowLimits, ThreadsBeyondThemShareOneTrackOfAPerfettoTrace) {
  AddThreads();
  const std::string trace = Export("perfetto");
  EXPECT_EQ(Count(trace, "further rows-framework"), 1u);
}

// With numbers of lines that are looked for from the first on it takes minutes.
TEST_F(RowLimits, LinesOfAnXSpaceHaveNumbersOfTheirOwn) {
  AddThreads();
  const XSpace space = ReadSpace(Export("xspace"));
  size_t events = 0;
  size_t lines = 0;
  for (const XPlane& plane : space.planes) {
    lines += plane.lines.size();
    for (const auto& [name, line] : plane.lines) events += line.size();
  }
  EXPECT_EQ(events, kThreads);
  EXPECT_EQ(lines, RowModel::kRowsMax + 1);
}

}  // namespace
}  // namespace neurontrace
