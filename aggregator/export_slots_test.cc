// SPDX-License-Identifier: Apache-2.0
// Goal: as many as are allowed, no more, and a place that is given back is free.
#include "aggregator/export_slots.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace neurontrace {
namespace {

TEST(ExportSlotsTest, AsManyAsAreAllowed) {
  ExportSlots slots(2);
  ExportSlots::Slot first = slots.Take();
  const ExportSlots::Slot second = slots.Take();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(slots.Take(), nullptr);
  EXPECT_EQ(slots.Take(), nullptr) << "a refusal takes no place";
  first.reset();
  first = slots.Take();
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(slots.Take(), nullptr);
}

TEST(ExportSlotsTest, NeverMoreFromManyThreads) {
  ExportSlots slots(3);
  std::atomic<int> held = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const ExportSlots::Slot slot = slots.Take();
        if (slot == nullptr) continue;
        const int now = ++held;
        int before = most;
        while (now > before && !most.compare_exchange_weak(before, now)) {
        }
        --held;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(most, 1);
  EXPECT_LE(most, 3);
  EXPECT_NE(slots.Take(), nullptr);
}

}  // namespace
}  // namespace neurontrace
