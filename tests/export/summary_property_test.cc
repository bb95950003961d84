// SPDX-License-Identifier: Apache-2.0
// Goal: the counts and lengths by event type in both summaries are those of the capture, of a part
// of it, too. Method: as in property_test.cc; what should be there is counted from what was
// written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "lib/base/clean_text.h"
#include "tests/export/format_readers.h"
#include "tests/export/hostile_capture.h"
#include "tests/export/random_part.h"

namespace neurontrace {
namespace {

struct TypeCounts {
  uint64_t count = 0;
  uint64_t instants = 0;
  uint64_t open = 0;
  uint64_t start_lost = 0;
  uint64_t spans = 0;  // with both ends
  uint64_t sum_ns = 0;
  uint64_t min_ns = 0;
  uint64_t max_ns = 0;
  friend bool operator==(const TypeCounts&, const TypeCounts&) = default;
};
void PrintTo(const TypeCounts& counts, std::ostream* out) {
  *out << fmt::format("{} of them {} instants {} open {} start lost {} spans {} ns {}..{}",
                      counts.count, counts.instants, counts.open, counts.start_lost, counts.spans,
                      counts.sum_ns, counts.min_ns, counts.max_ns);
}
using ByType = std::map<std::string, TypeCounts>;
constexpr size_t kTypesInText = 40;

ByType Count(const CaptureTruth& truth, const RandomPart& part) {
  ByType counted;
  for (const auto& [id, event] : truth.events) {
    if (!part.Selects(event)) continue;
    TypeCounts& counts = counted[event.category.empty() ? event.name : event.category];
    ++counts.count;
    if (event.is_instant || event.is_open || event.is_start_lost) {
      ++(event.is_instant ? counts.instants : event.is_open ? counts.open : counts.start_lost);
      continue;
    }
    const uint64_t length_ns = event.end_ns - event.start_ns;
    counts.min_ns = counts.spans == 0 ? length_ns : std::min(counts.min_ns, length_ns);
    counts.max_ns = std::max(counts.max_ns, length_ns);
    counts.sum_ns += length_ns;
    ++counts.spans;
  }
  return counted;
}

ByType ReadSummaryJson(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("summary-json", source, {.filter = filter});
  simdjson::dom::parser parser;
  simdjson::dom::element document;
  const auto error = parser.parse(files.at("summary.json")).get(document);
  EXPECT_EQ(error, simdjson::SUCCESS) << error;
  ByType counted;
  if (error != simdjson::SUCCESS) return counted;
  for (const simdjson::dom::element row : document["summary"]["event_types"].get_array()) {
    const Texts values = ValuesOf(row.get_object());
    const Texts spans = ValuesOf(row["spans"].get_object());
    const TypeCounts counts{.count = NumberIn(values, "count"),
                            .instants = NumberIn(values, "instants"),
                            .open = NumberIn(values, "open"),
                            .start_lost = NumberIn(values, "start_lost"),
                            .spans = NumberIn(spans, "count"),
                            .sum_ns = NumberIn(spans, "sum_ns"),
                            .min_ns = NumberIn(spans, "min_ns"),
                            .max_ns = NumberIn(spans, "max_ns")};
    EXPECT_TRUE(counted.emplace(TextIn(values, "event_type"), counts).second);
  }
  return counted;
}

// The cells of a row of a table of text: two blanks and more are between them, none before a cell
// that is empty.
std::vector<std::string> CellsOf(std::string_view line) {
  line.remove_prefix(2);
  std::vector<std::string> cells;
  while (true) {
    const size_t end = line.find("  ");
    cells.emplace_back(line.substr(0, end));
    if (end == std::string_view::npos) return cells;
    line.remove_prefix(line.find_first_not_of(' ', end));
  }
}

// As a table shows a name: signs for what is no text, and cut.
std::string ShownName(std::string name, size_t columns_max) {
  static constexpr std::string_view kReplaced = "\xef\xbf\xbd";
  for (size_t at = name.find(kReplaced); at != std::string::npos; at = name.find(kReplaced)) {
    name.replace(at, kReplaced.size(), "?");
  }
  name = CleanText(name, SIZE_MAX);
  return name.size() <= columns_max ? name : name.substr(0, columns_max - 2) + "..";
}

// Name and count of the rows of "Events by type".
std::map<std::string, uint64_t> ReadSummaryText(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("summary-text", source, {.filter = filter});
  std::istringstream lines(files.at("summary.txt"));
  std::map<std::string, uint64_t> counted;
  bool is_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Events by type")) {
      is_table = true;
    } else if (line.empty()) {
      is_table = false;
    } else if (is_table) {
      const std::vector<std::string> cells = CellsOf(line);
      EXPECT_EQ(cells.size(), 6u) << line;
      if (cells.size() != 6 || cells[1] == "count") continue;
      std::string count = cells[1];
      std::erase(count, ',');
      EXPECT_TRUE(counted.emplace(cells[0], NumberOf(count)).second) << "twice: " << line;
    }
  }
  return counted;
}

// A span that can be missing has no place in counts: hostile captures of a millisecond have none.
void ExpectSummariesCount(uint64_t seed, const HostileCapture::Shape& shape) {
  FakeChunkSource source;
  const CaptureTruth truth = HostileCapture::Make(seed, shape, source);
  const RandomPart part = RandomPart::Make(seed, shape);
  SCOPED_TRACE(fmt::format("seed {}: {}", seed, part.words));
  const ByType expected = Count(truth, part);
  EXPECT_EQ(ReadSummaryJson(source, part.filter), expected);
  ASSERT_LE(expected.size(), kTypesInText) << "the table shows no more, and that is not read here";
  const auto shown = ReadSummaryText(source, part.filter);
  size_t columns = 0;
  for (const auto& [name, count] : shown) {
    if (name.ends_with("..")) columns = name.size();
  }
  std::map<std::string, uint64_t> names;
  for (const auto& [name, counts] : expected) {
    names[ShownName(name, columns == 0 ? SIZE_MAX : columns)] += counts.count;
  }
  EXPECT_EQ(shown, names);
}

TEST(SummaryPropertyTest, CountsByEventTypeAreTheCaptures) {
  for (uint64_t seed = 600; seed < 608; ++seed) ExpectSummariesCount(seed, {});
}

TEST(SummaryPropertyTest, AlsoWhereManyTimesAreEqual) {
  for (uint64_t seed = 620; seed < 623; ++seed) {
    ExpectSummariesCount(seed, {.length_ns = 10'000, .grid_ns = 500});
  }
}

}  // namespace
}  // namespace neurontrace
