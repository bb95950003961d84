// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/ids.h"

namespace neurontrace {

// One core's claim to a global rank, with when it had events.
struct RankClaim {
  std::string job;
  StreamIdentity stream;
  int64_t worker_gid = -1;  // -1: none
  uint64_t first_timestamp_ns = 0;
  uint64_t last_timestamp_ns = 0;
};

// Two live cores of one job that claim the same worker_gid: live means that the times of their
// events overlap, so a worker that was restarted is no conflict with itself. Framework traces claim
// the rank of the cores they ran on and conflict with nobody. One warning a rank, which names the
// first two; at most limits::kCaptureWarningsMax. Pure.
std::vector<std::string> FindRankConflicts(std::span<const RankClaim> claims);

}  // namespace neurontrace
