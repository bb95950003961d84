// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/line_union.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace neurontrace {
namespace {

// So many lines may be made again because a later list overlaps them: an hour's, second by second,
// of a clock that was set back by an hour eighteen times.
constexpr size_t kLinesRedoneMax = 65'536;

// Makes `lines` their union with `second`, without a look at what ends before `second` begins.
// Returns how many it made again.
size_t Unite(std::vector<ClockLine>& lines, std::span<const ClockLine> second) {
  if (second.empty()) return 0;
  auto tail = std::partition_point(lines.begin(), lines.end(), [&](const ClockLine& line) {
    return line.x_end_ns <= second.front().x_begin_ns;
  });
  if (tail == lines.end()) {
    lines.insert(lines.end(), second.begin(), second.end());
    return 0;
  }
  if (tail != lines.begin()) --tail;  // in a gap it is the line before that goes on
  const std::vector<ClockLine> made = UnionOf(std::span(tail, lines.end()), second);
  const auto redone = static_cast<size_t>(lines.end() - tail);
  lines.erase(tail, lines.end());
  lines.insert(lines.end(), made.begin(), made.end());
  return redone;
}

std::vector<ClockLine> UniteByHalves(std::span<std::vector<ClockLine>> lists) {
  if (lists.size() == 1) return std::move(lists.front());
  const size_t half = lists.size() / 2;
  const std::vector<ClockLine> first = UniteByHalves(lists.first(half));
  return UnionOf(first, UniteByHalves(lists.subspan(half)));
}

}  // namespace

std::vector<ClockLine> UnionOfAll(std::vector<std::vector<ClockLine>> lists) {
  std::vector<ClockLine> lines;
  size_t redone = 0;
  size_t next = 0;
  while (next < lists.size() && redone <= kLinesRedoneMax) redone += Unite(lines, lists[next++]);
  if (next < lists.size()) Unite(lines, UniteByHalves(std::span(lists).subspan(next)));
  return lines;
}

}  // namespace neurontrace
