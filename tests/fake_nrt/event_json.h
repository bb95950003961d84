// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tests/fake_nrt/core_ring.h"
#include "tests/fake_nrt/fetch_buffer.h"

namespace neurontrace {

// Bytes that one event takes on average; what a fetch reserves at first.
inline constexpr size_t kJsonBytesPerEvent = 320;

// Ids carry the core above this bit.
inline constexpr int kCoreIdShift = 50;

// Appends one event as the runtime writes it: compact, keys in the runtime's order, no comma around
// it. `worker_gid` is -1 while no communicator gave the core a global id. False without memory.
bool AppendEventJson(FetchBuffer& out, const RingEvent& event, uint32_t nc_idx,
                     uint64_t nc_local_id, int32_t worker_gid);

}  // namespace neurontrace
