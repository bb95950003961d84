// SPDX-License-Identifier: Apache-2.0
#include "aggregator/insight/group_ids.h"

#include <algorithm>

#include "lib/trace/watch_limits.h"

namespace neurontrace {
namespace {

// An absent id differs from all small ones.
uint64_t Mix(uint64_t seed, std::optional<uint64_t> id) {
  return MixBits(seed ^ MixBits(id ? *id + 1 : UINT64_MAX));
}

}  // namespace

uint64_t MixBits(uint64_t value) {
  value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdu;
  value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53u;
  return value ^ (value >> 33);
}

uint64_t GroupIds::Of(const Reported& ids) {
  if (ids.peer) {
    // Each names the other one, so that the pair is the same for both.
    const auto own = static_cast<uint64_t>(ids.worker_gid);
    return NonZero(Mix(Mix(1, std::min(own, *ids.peer)), std::max(own, *ids.peer)));
  }
  if (ids.gid && !is_group_) Learn(ids);
  const bool has_group = ids.gid && is_group_;
  if (!has_group && !ids.stream_id) return 0;
  return NonZero(Mix(Mix(2, has_group ? ids.gid : std::nullopt), ids.stream_id));
}

// Beyond the limit nothing is compared: the id stays a rank, and its group the whole job.
void GroupIds::Learn(const Reported& ids) {
  const uint64_t gid = *ids.gid;
  if (ids.worker_gid >= 0 && static_cast<uint64_t>(ids.worker_gid) != gid) is_group_ = true;
  if (core_of_gid_.size() < limits::kWatchGroupIdsMax || core_of_gid_.contains(gid)) {
    if (core_of_gid_.try_emplace(gid, ids.core).first->second != ids.core) is_group_ = true;
  }
  if (gid_of_core_.size() < limits::kWatchGroupIdsMax || gid_of_core_.contains(ids.core)) {
    if (gid_of_core_.try_emplace(ids.core, gid).first->second != gid) is_group_ = true;
  }
  if (!is_group_) return;
  core_of_gid_ = {};
  gid_of_core_ = {};
}

}  // namespace neurontrace
