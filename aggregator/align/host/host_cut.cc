// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/host/host_cut.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "aggregator/align/core/wide.h"

namespace neurontrace {
namespace {

// Returns nullptr for events that the raw clock does not feel.
const char* ToString(ClockEventKind kind) {
  switch (kind) {
    case ClockEventKind::kSuspend:
      return "the host was suspended";
    case ClockEventKind::kPause:
      return "nothing ran on the host for a while";
    case ClockEventKind::kMigration:
      return "the hypervisor reported a disruption";
    case ClockEventKind::kClockSource:
      return "the kernel switched to another clock source";
    case ClockEventKind::kUnspecified:
    case ClockEventKind::kRealtimeStep:
      break;
  }
  return nullptr;
}

}  // namespace

std::vector<HostCut> ReportedCuts(std::span<const ClockEvent> events,
                                  std::span<const HostSide> sides,
                                  const std::vector<HostExchange>& exchanges) {
  // The reports of the host come first, then the changes of the reference's epoch between two
  // sides.
  std::vector<HostCut> cuts;
  for (const ClockEvent& event : events) {
    const char* words = ToString(event.kind);
    if (words == nullptr || event.raw_end_ns < event.raw_begin_ns) continue;
    if (event.raw_end_ns >= kEvidenceTimeMaxNs) continue;
    // The amount is unknown: no event states how far the raw clock itself moved.
    cuts.push_back({event.raw_begin_ns, event.raw_end_ns, SegmentCause::kHostEvent, 0, words});
  }
  for (size_t i = 1; i < sides.size(); ++i) {
    if (exchanges[sides[i].exchange].epoch == exchanges[sides[i - 1].exchange].epoch) continue;
    cuts.push_back({sides[i - 1].x_ns, sides[i].x_ns, SegmentCause::kReferenceEpoch, 0,
                    "the reference restarted"});
  }
  return MergeCuts(std::move(cuts));
}

// The sort is stable, so that of two cuts with the same times the one that was found first keeps
// its cause.
std::vector<HostCut> MergeCuts(std::vector<HostCut> cuts) {
  std::stable_sort(cuts.begin(), cuts.end(), [](const HostCut& a, const HostCut& b) {
    return std::tie(a.x_begin_ns, a.x_end_ns) < std::tie(b.x_begin_ns, b.x_end_ns);
  });
  std::vector<HostCut> merged;
  for (HostCut& cut : cuts) {
    // Two cuts without length at one moment are the same.
    const bool is_same =
        !merged.empty() && std::tie(cut.x_begin_ns, cut.x_end_ns) ==
                               std::tie(merged.back().x_begin_ns, merged.back().x_end_ns);
    if (merged.empty() || (cut.x_begin_ns >= merged.back().x_end_ns && !is_same)) {
      merged.push_back(std::move(cut));
      continue;
    }
    HostCut& last = merged.back();
    last.x_end_ns = std::max(last.x_end_ns, cut.x_end_ns);
    // The amounts of different events cannot be combined.
    last.amount_ns = 0;
    if (last.words.find(cut.words) == std::string::npos) last.words += "; " + cut.words;
  }
  return merged;
}

// Uses binary searches, as sides and cuts are sorted.
std::vector<std::span<const HostSide>> SplitAtSteps(std::span<const HostSide> sides,
                                                    std::span<const HostCut> cuts) {
  std::vector<std::span<const HostSide>> stretches;
  const auto first_at = [&](uint64_t x_ns) {
    return std::lower_bound(sides.begin(), sides.end(), x_ns,
                            [](const HostSide& side, uint64_t x) { return side.x_ns < x; });
  };
  const auto first_beyond = [&](uint64_t x_ns) {
    return std::upper_bound(sides.begin(), sides.end(), x_ns,
                            [](uint64_t x, const HostSide& side) { return x < side.x_ns; });
  };
  for (size_t s = 0; s <= cuts.size(); ++s) {
    const auto begin = s == 0 ? sides.begin() : first_at(cuts[s - 1].x_end_ns);
    const auto end = s == cuts.size() ? sides.end() : first_beyond(cuts[s].x_begin_ns);
    // Without a side between the two cuts the stretch is empty.
    stretches.push_back(begin < end ? std::span(begin, end) : std::span<const HostSide>());
  }
  return stretches;
}

}  // namespace neurontrace
