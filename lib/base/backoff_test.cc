// SPDX-License-Identifier: Apache-2.0
#include "lib/base/backoff.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(Backoff, DoublesUpToTheLongestWithUpToAQuarterOff) {
  SeededRandom random(3);
  Backoff backoff(random, 100, 1'000);
  for (const uint64_t full : {100u, 200u, 400u, 800u, 1'000u, 1'000u}) {
    const uint64_t delay = backoff.NextDelayNs();
    EXPECT_LE(delay, full);
    EXPECT_GE(delay, full - full / 4);
  }
  backoff.Reset();
  EXPECT_LE(backoff.NextDelayNs(), 100u);
}

}  // namespace
}  // namespace neurontrace
