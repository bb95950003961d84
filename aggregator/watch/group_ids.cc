// SPDX-License-Identifier: Apache-2.0
#include "aggregator/watch/group_ids.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "lib/trace/watch_limits.h"

namespace neurontrace {

uint64_t GroupIds::Of(uint32_t core, int64_t worker_gid, std::optional<uint64_t> gid,
                      std::optional<uint64_t> stream_id) {
  if (gid && !is_group_) Learn(core, worker_gid, *gid);
  const bool has_group = gid && is_group_;
  if (!has_group && !stream_id) return 0;
  // 0 stands for the whole job.
  return std::max<uint64_t>(1, absl::HashOf(has_group, has_group ? *gid : 0, stream_id));
}

// Beyond the limit nothing is compared: the id stays a rank, and its group the whole job.
void GroupIds::Learn(uint32_t core, int64_t worker_gid, uint64_t gid) {
  if (worker_gid >= 0 && static_cast<uint64_t>(worker_gid) != gid) is_group_ = true;
  if (core_of_gid_.size() < limits::kWatchGroupIdsMax || core_of_gid_.contains(gid)) {
    if (core_of_gid_.try_emplace(gid, core).first->second != core) is_group_ = true;
  }
  if (gid_of_core_.size() < limits::kWatchGroupIdsMax || gid_of_core_.contains(core)) {
    if (gid_of_core_.try_emplace(core, gid).first->second != gid) is_group_ = true;
  }
  if (!is_group_) return;
  core_of_gid_ = {};
  gid_of_core_ = {};
}

}  // namespace neurontrace
