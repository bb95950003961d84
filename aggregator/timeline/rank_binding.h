// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "aggregator/timeline/chunk_source.h"

namespace neurontrace {

// Which global worker a stream belongs to, by the best evidence there is.
struct RankBinding {
  std::optional<int64_t> worker_gid;
  bool is_disputed = false;  // another core claims the same one at the same time
  std::string label;  // "gid7", or "gid7 (i-0abc pid 4711 nc 3)" where disputed; empty: unknown
};

// One binding for each stream, in the same order. Two cores that claim one worker_gid at the same
// time are kept apart by their labels. If they are of one job, `warnings` says so, once for each
// gid. Of workers that name no job, one whose cores are as many as its world has is a job of its
// own.
std::vector<RankBinding> BindRanks(const std::vector<StreamDescription>& streams,
                                   std::vector<std::string>& warnings);

}  // namespace neurontrace
