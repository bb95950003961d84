// SPDX-License-Identifier: Apache-2.0
// Goal: to the bit what uniting list after list gives, without its square of the lists' number.
// Method: comparison with just that; sizes at which it would take minutes.
#include "aggregator/align/line_union.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/random.h"

namespace neurontrace {
namespace {

using Lists = std::vector<std::vector<ClockLine>>;

std::vector<ClockLine> OneByOne(const Lists& lists) {
  std::vector<ClockLine> lines;
  for (const std::vector<ClockLine>& list : lists) lines = UnionOf(lines, list);
  return lines;
}

// A clock that is 5 ms behind, and by as much as a map is off.
std::vector<ClockLine> Stretch(uint64_t begin, uint64_t lines, SeededRandom& random) {
  std::vector<ClockLine> list;
  uint64_t x = begin;
  uint64_t y = begin + 5'000'000 + random.Next64() % 1'000;
  for (uint64_t i = 0; i < lines; ++i) {
    const uint64_t length = 1'000 + random.Next64() % 100'000;
    const uint64_t rise = length + random.Next64() % 30;
    list.push_back({x, x + length, y, y + rise, random.Next64() % 500});
    x += length;
    y += rise;
  }
  return list;
}

TEST(LineUnionTest, IsTheUnionOneByOne) {
  SeededRandom random(7);
  for (int round = 0; round < 300; ++round) {
    Lists lists;
    uint64_t x = 10'000'000;
    for (uint64_t i = random.Next64() % 12; i > 0; --i) {
      lists.push_back(Stretch(x, random.Next64() % 6, random));
      if (!lists.back().empty()) x = lists.back().back().x_end_ns;
      // Set ahead, not at all, or back: somewhat, or before all there is.
      switch (random.Next64() % 4) {
        case 0:
          x += random.Next64() % 200'000;
          break;
        case 1:
          break;
        case 2:
          x -= random.Next64() % 100'000;
          break;
        default:
          x -= random.Next64() % std::min<uint64_t>(x, 2'000'000);
      }
    }
    const std::vector<ClockLine> expected = OneByOne(lists);
    EXPECT_EQ(UnionOfAll(std::move(lists)), expected) << round;
  }
}

TEST(LineUnionTest, ManyListsOneAfterTheOtherAreNoSquare) {
  constexpr uint64_t kMany = 100'000;
  Lists lists;
  for (uint64_t i = 0; i < kMany; ++i) {
    // Each begins a little before the one before it ends.
    lists.push_back({{1'000 * i, 1'000 * i + 1'010, 1'000 * i, 1'000 * i + 1'010, 5}});
  }
  EXPECT_EQ(UnionOfAll(std::move(lists)).size(), 2 * kMany - 1);
}

TEST(LineUnionTest, AClockThatIsSetBackAgainAndAgainIsNoSquareAndKeepsItsBounds) {
  constexpr uint64_t kMany = 60'000;
  Lists lists;
  for (uint64_t i = 0; i < kMany; ++i) {
    const uint64_t begin = 1'000'000 + 3 * i;
    lists.push_back({{begin, begin + 1'000'000, 7'000'000 + 11 * i, 8'000'000 + 11 * i, 5}});
  }
  const Lists copy = lists;
  const std::vector<ClockLine> lines = UnionOfAll(std::move(lists));
  EXPECT_LE(lines.size(), 3 * kMany);
  for (size_t i = 0; i < lines.size(); i += 97) {
    const ClockLine& line = lines[i];
    ASSERT_LT(line.x_begin_ns, line.x_end_ns);
    ASSERT_EQ(i == 0 ? line.x_begin_ns : lines[i - 1].x_end_ns, line.x_begin_ns);
    for (size_t k = 0; k < copy.size(); k += 1'009) {
      const ClockLine& of = copy[k].front();
      if (of.x_begin_ns > line.x_begin_ns || of.x_end_ns <= line.x_begin_ns) continue;
      const uint64_t y = of.At(line.x_begin_ns);
      const uint64_t off = std::max(y, line.y_begin_ns) - std::min(y, line.y_begin_ns);
      ASSERT_LE(off + of.bound_ns, line.bound_ns) << i << ", " << k;
    }
  }
}

}  // namespace
}  // namespace neurontrace
