// SPDX-License-Identifier: Apache-2.0
#include "lib/clock/replay_window.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace neurontrace {
namespace {

TEST(ReplayWindow, TakesEachNumberOnceInAnyOrder) {
  ReplayWindow window;
  for (const uint64_t sequence : {3u, 1u, 2u, 5u, 4u, 70u, 69u, 68u}) {
    EXPECT_TRUE(window.TakeNew(sequence)) << sequence;
    EXPECT_FALSE(window.TakeNew(sequence)) << sequence;
  }
  EXPECT_FALSE(window.TakeNew(6)) << "too far behind to know";
  EXPECT_TRUE(window.TakeNew(7)) << "just within";
  EXPECT_TRUE(window.TakeNew(1'000'000));
  EXPECT_FALSE(window.TakeNew(70));
}

}  // namespace
}  // namespace neurontrace
