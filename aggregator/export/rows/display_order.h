// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "aggregator/timeline/timeline_reader.h"

namespace neurontrace {

// The streams in the order in which their rows stand: instances by their lowest worker_gid, workers
// in each likewise, then cores by worker_gid. What has none comes last, by name. Pure.
std::vector<uint32_t> DisplayOrder(std::span<const TimelineStream> streams);

}  // namespace neurontrace
