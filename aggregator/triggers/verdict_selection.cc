// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/verdict_selection.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Returns ascending numbers as ranges.
std::vector<GidRange> RangesOf(const std::set<int64_t>& gids) {
  std::vector<GidRange> ranges;
  for (const int64_t gid : gids) {
    if (!ranges.empty() && ranges.back().last + 1 == gid) {
      ranges.back().last = gid;
    } else {
      ranges.push_back({gid, gid});
    }
  }
  return ranges;
}

}  // namespace

CaptureSpec::Selection SelectionOf(const LiveVerdict& verdict, uint32_t peers) {
  if (verdict.suspects.empty()) return {};
  std::vector<VerdictCore> cores = verdict.suspects;
  const size_t count = std::min<size_t>(peers, verdict.peers.size());
  cores.insert(cores.end(), verdict.peers.begin(),
               verdict.peers.begin() + static_cast<ptrdiff_t>(count));
  std::set<int64_t> gids;
  std::set<std::string> instances;
  for (const VerdictCore& core : cores) {
    gids.insert(core.worker_gid);
    instances.insert(core.worker.instance_id);
  }
  CaptureSpec::Selection selection;
  selection.worker_gids = RangesOf(gids);
  if (*gids.begin() >= 0 && selection.worker_gids.size() <= limits::kSelectionItemsMax) {
    return selection;
  }
  selection.worker_gids.clear();
  // With more instances than a selection can name, the whole job is recorded.
  if (instances.size() > limits::kSelectionItemsMax) return selection;
  selection.instance_ids.assign(instances.begin(), instances.end());
  return selection;
}

}  // namespace neurontrace
