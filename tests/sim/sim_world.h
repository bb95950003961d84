// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lib/base/clock.h"
#include "lib/base/fake_task_runner.h"
#include "tests/sim/sim_random.h"
#include "tests/sim/sim_trace.h"

namespace neurontrace {

inline constexpr uint64_t kSimMs = 1'000'000;
inline constexpr uint64_t kSimSecond = 1'000 * kSimMs;

// Time, chance and memory of one run; outlives all that is simulated.
struct SimWorld {
  SimWorld(uint64_t seed, bool verbose) : random(seed), trace(clock, verbose) {}

  FakeClock clock;
  FakeTaskRunner runner{clock};
  SimRandom random;
  SimTrace trace;
};

}  // namespace neurontrace
