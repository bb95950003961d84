// SPDX-License-Identifier: Apache-2.0
// What the replay's libnrt.so.1 offers its producer, outside of the runtime's own names.
#pragma once

#include <cstdint>

extern "C" {

// Before nrt_init.
__attribute__((visibility("default"))) void compare_replay_begin(uint64_t seed, uint32_t cores,
                                                                 uint32_t first_gid);
// Returns the seconds over which `events` fell due; `*taken` is 0 when no capture ran.
__attribute__((visibility("default"))) double compare_replay_run(uint64_t events, double rate,
                                                                 uint64_t* taken);
}
