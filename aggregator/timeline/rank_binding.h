// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/timeline/chunk_source.h"

namespace neurontrace {

// The global worker (rank) that a stream belongs to, by the best evidence there is. A plain value.
struct RankBinding {
  std::optional<int64_t> worker_gid;
  // Another core claims the same worker_gid at the same time.
  bool is_disputed = false;
  // "gid7", or "gid7 (i-0abc pid 4711 nc 3)" if it is disputed. Empty if no rank is known.
  std::string label;  // "gid7", or "gid7 (i-0abc pid 4711 nc 3)" where disputed; empty: unknown
};

// Returns one binding for each stream, in the same order. Two cores that claim one worker_gid at
// the same time are distinguished by their labels. If both are of one job, a warning is appended,
// one for each gid and job, up to a limit. A worker without a job whose cores are as many as its
// world counts as a job of its own and causes no warning. A pure function.
std::vector<RankBinding> BindRanks(const std::vector<StreamDescription>& streams,
                                   std::vector<std::string>& warnings);

}  // namespace neurontrace
