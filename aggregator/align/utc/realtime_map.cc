// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/utc/realtime_map.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "aggregator/align/core/clock_reading.h"
#include "aggregator/align/core/wide.h"
#include "aggregator/align/utc/snapshot_chain.h"

namespace neurontrace {
namespace {

// Two curves are put together here: REALTIME by raw from the snapshots (snapshot_chain.h), and the
// reference by raw from the model of the host. Composing them line by line gives the reference by
// REALTIME. Where REALTIME was set back, the same timestamp lies on two curves, and the map follows
// the middle of both. Tests are in realtime_map_test.cc.

// How many lines may be made again because a later list overlaps them: one hour, second by second,
// of a clock that was set back by an hour eighteen times.
constexpr size_t kLinesRedoneMax = 65'536;

// Replaces `lines` by their union with `second`, without touching those that end before `second`
// begins. Returns how many were made again.
size_t Unite(std::vector<ClockLine>& lines, std::span<const ClockLine> second) {
  if (second.empty()) return 0;
  auto tail = std::partition_point(lines.begin(), lines.end(), [&](const ClockLine& line) {
    return line.x_end_ns <= second.front().x_begin_ns;
  });
  if (tail == lines.end()) {
    lines.insert(lines.end(), second.begin(), second.end());
    return 0;
  }
  if (tail != lines.begin()) --tail;  // in a gap the line before continues
  const std::vector<ClockLine> made = UnionOf(std::span(tail, lines.end()), second);
  const auto redone = static_cast<size_t>(lines.end() - tail);
  lines.erase(tail, lines.end());
  lines.insert(lines.end(), made.begin(), made.end());
  return redone;
}

// Unites neighbours first, so that a line is made again once for each halving. Requires at least
// one list and moves from it.
std::vector<ClockLine> UniteByHalves(std::span<std::vector<ClockLine>> lists) {
  if (lists.size() == 1) return std::move(lists.front());
  const size_t half = lists.size() / 2;
  const std::vector<ClockLine> first = UniteByHalves(lists.first(half));
  return UnionOf(first, UniteByHalves(lists.subspan(half)));
}

// Returns the bound of a composed line. Raw may be as far off as REALTIME is; an eighth more allows
// for slews.
uint64_t WithSnapshots(uint64_t model_bound_ns, uint64_t snapshot_bound_ns) {
  // Saturates to kNoBound.
  return Saturate(Wide{model_bound_ns} + snapshot_bound_ns + snapshot_bound_ns / 8 + 2);
}

// Inverts the line of raw to REALTIME and continues it by the lines of raw to the reference. Adds
// only lines that go forwards in REALTIME.
void Compose(const ClockLine& realtime, std::span<const ClockLine> model,
             std::vector<ClockLine>& lines) {
  auto part = std::upper_bound(model.begin(), model.end(), realtime.x_begin_ns,
                               [](uint64_t x, const ClockLine& line) { return x < line.x_end_ns; });
  for (; part != model.end() && part->x_begin_ns < realtime.x_end_ns; ++part) {
    const uint64_t begin = std::max(part->x_begin_ns, realtime.x_begin_ns);
    const uint64_t end = std::min(part->x_end_ns, realtime.x_end_ns);
    const ClockLine line{realtime.At(begin), realtime.At(end), part->At(begin), part->At(end),
                         WithSnapshots(part->bound_ns, realtime.bound_ns)};
    if (line.x_begin_ns < line.x_end_ns) lines.push_back(line);
  }
}

// Nothing is known of timestamps from long before all evidence, such as those of files of other
// days. They stay unchanged rather than where a drift would have taken them in a year.
ClockMap AsRecordedBefore(const ClockMap& map) {
  if (map.is_identity()) return map;
  const ClockMap::Piece& first = map.pieces().front();
  std::vector<ClockMap::Piece> pieces = {{0, 0, 0, std::nullopt}};
  if (first.reference_begin_ns < first.raw_begin_ns) {  // stands still, as no map runs back
    pieces.push_back(
        {first.reference_begin_ns, first.reference_begin_ns, -ClockMap::kRateMax, std::nullopt});
  }
  // Evidence from the beginning of the scale leaves no room for pieces before it.
  if (first.raw_begin_ns <= pieces.back().raw_begin_ns) return map;
  pieces.insert(pieces.end(), map.pieces().begin(), map.pieces().end());
  absl::StatusOr<ClockMap> whole = ClockMap::FromPieces(std::move(pieces));
  return whole.ok() ? *std::move(whole) : map;
}

}  // namespace

std::vector<ClockLine> UnionOfAll(std::vector<std::vector<ClockLine>> lists) {
  std::vector<ClockLine> lines;
  size_t redone = 0;
  size_t next = 0;
  // Lists are united from left to right first, because most lists touch only the end of those
  // before.
  while (next < lists.size() && redone <= kLinesRedoneMax) redone += Unite(lines, lists[next++]);
  if (next < lists.size()) Unite(lines, UniteByHalves(std::span(lists).subspan(next)));
  return lines;
}

std::vector<RealtimeInterval> RealtimeIntervalsOf(const ClockModel& model,
                                                  std::span<const ClockSnapshot> snapshots,
                                                  std::span<const ClockEvent> events) {
  const std::vector<ClockLine> raw = LinesOf(model);
  std::vector<RealtimeInterval> stretches;
  for (const SnapshotChain& chain : ChainsOf(snapshots, events)) {
    RealtimeInterval stretch{chain.raw_begin_ns, chain.raw_end_ns, {}};
    for (const ClockLine& line : chain.lines) Compose(line, raw, stretch.lines);
    if (!stretch.lines.empty()) stretches.push_back(std::move(stretch));
  }
  return stretches;
}

ClockMap RealtimeMapOf(const ClockModel& model, std::span<const ClockSnapshot> snapshots,
                       std::span<const ClockEvent> events) {
  std::vector<std::vector<ClockLine>> lists;
  for (RealtimeInterval& stretch : RealtimeIntervalsOf(model, snapshots, events)) {
    lists.push_back(std::move(stretch.lines));
  }
  return AsRecordedBefore(MapAlong(UnionOfAll(std::move(lists))));
}

}  // namespace neurontrace
