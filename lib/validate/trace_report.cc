// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "lib/validate/limits.h"

namespace neurontrace {
namespace {

// Returns whether `a` is shown above `b` in Perfetto's interface. Processes and threads are ordered
// by rank, before all other tracks. Tracks of equal rank keep the order of the file.
bool IsEarlier(const TraceTrack& a, const TraceTrack& b, ChildOrder order) {
  const auto is_plain = [](const TraceTrack& track) {
    return track.kind == TrackKind::kPlain || track.kind == TrackKind::kCounter;
  };
  if (is_plain(a) != is_plain(b)) return is_plain(b);
  if (!is_plain(a)) return std::tie(a.rank, a.name) < std::tie(b.rank, b.name);
  switch (order) {
    case ChildOrder::kByRank:
      return a.rank < b.rank;
    case ChildOrder::kByTime:
      return a.first_ns < b.first_ns;
    case ChildOrder::kByName:
      return a.name < b.name;
    case ChildOrder::kUnknown:
      break;
  }
  return false;
}

// Returns the line of a track, with the counts that are not 0.
std::string Line(const TraceTrack& track, size_t depth, bool has_description) {
  std::string line(2 * depth, ' ');
  line += track.name.empty() ? fmt::format("track {}", track.uuid) : track.name;
  std::vector<std::string> counts;
  if (track.slices > 0) counts.push_back(DescribeCount(track.slices, "slice"));
  if (track.open_slices > 0) counts.push_back(fmt::format("{} open", track.open_slices));
  if (track.instants > 0) counts.push_back(DescribeCount(track.instants, "instant"));
  if (track.counter_values > 0) counts.push_back(DescribeCount(track.counter_values, "value"));
  for (size_t i = 0; i < counts.size(); ++i) line += (i == 0 ? ": " : ", ") + counts[i];
  if (has_description) line += fmt::format(" ({})", track.description);
  if (!track.is_described && track.uuid != 0) line += " (not described)";
  line += '\n';
  return line;
}

}  // namespace

std::string TrackTree(const TraceReport& report) {
  const auto& tracks = report.tracks;
  std::vector<std::vector<uint32_t>> children(tracks.size() + 1);  // the last: of nothing
  for (uint32_t i = 0; i < tracks.size(); ++i) {
    const uint32_t parent = tracks[i].parent;
    children[parent == TraceTrack::kNoTrack ? tracks.size() : parent].push_back(i);
  }
  for (size_t i = 0; i < children.size(); ++i) {
    const ChildOrder order = i < tracks.size() ? tracks[i].child_order : ChildOrder::kUnknown;
    std::stable_sort(children[i].begin(), children[i].end(), [&](uint32_t a, uint32_t b) {
      return IsEarlier(tracks[a], tracks[b], order);
    });
  }
  std::string text;
  struct Step {
    uint32_t track = 0;
    size_t depth = 0;
  };
  // A stack replaces recursion, because a crafted file may nest tracks deeply.
  std::vector<Step> steps;
  // Pushed in reverse, so that the first child is taken first.
  const auto push = [&](const std::vector<uint32_t>& below, size_t depth) {
    for (auto it = below.rbegin(); it != below.rend(); ++it) steps.push_back({*it, depth});
  };
  // A track that is its own ancestor is below no root and does not appear, so that the loop ends.
  push(children.back(), 0);
  Step before{.depth = SIZE_MAX};
  while (!steps.empty()) {
    const Step step = steps.back();
    steps.pop_back();
    // A description that equals the one of the sibling above is not repeated.
    const std::string& description = tracks[step.track].description;
    const bool is_reported =
        before.depth == step.depth && tracks[before.track].description == description;
    // The indentation is limited, as it would make the text quadratic in the depth.
    text += Line(tracks[step.track], std::min(step.depth, validate_limits::kAncestorsMax),
                 !description.empty() && !is_reported);
    before = step;
    push(children[step.track], step.depth + 1);
  }
  return text;
}

}  // namespace neurontrace
