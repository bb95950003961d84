// SPDX-License-Identifier: Apache-2.0
// Goal: where there is room for one reader a turn, a buffer that fills fast does not overflow, and
// those that fill slowly are read all the same.
#include "agent/source/neuron/reading_order.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

std::vector<size_t> Indexes(const std::vector<WaitingReader>& order) {
  std::vector<size_t> indexes;
  for (const WaitingReader& reader : order) indexes.push_back(reader.index);
  return indexes;
}

TEST(ReadingOrderTest, TheSoonestFullComesFirst) {
  EXPECT_EQ(Indexes(ReadingOrder({{0, 30, 5}, {1, 10, 4}, {2, 20, 3}}, 7)),
            (std::vector<size_t>{1, 2, 0}));
  EXPECT_TRUE(ReadingOrder({}, 8).empty());
}

TEST(ReadingOrderTest, EverySecondTurnBeginsWithWhoHasWaitedLongest) {
  EXPECT_EQ(Indexes(ReadingOrder({{0, 30, 2}, {1, 10, 4}, {2, 20, 3}}, 8)),
            (std::vector<size_t>{0, 1, 2}));
}

TEST(ReadingOrderTest, ALoudWorkerNeitherOverflowsNorStarvesTheOthers) {
  constexpr size_t kWorkers = 16;
  constexpr uint64_t kBufferBytes = 32 << 20;
  constexpr uint64_t kReadBytes = 2 << 20;       // the sink has room for this much a turn
  std::vector<uint64_t> rate(kWorkers, 20'000);  // bytes a turn
  rate[9] = 50 * rate[0];
  std::vector<uint64_t> waiting(kWorkers, kBufferBytes / 2);
  std::vector<uint64_t> last_turn(kWorkers, 0);
  uint64_t longest_wait = 0;
  for (uint64_t turn = 1; turn < 5'000; ++turn) {
    std::vector<WaitingReader> readers;
    for (size_t i = 0; i < kWorkers; ++i) {
      waiting[i] += rate[i];
      ASSERT_LE(waiting[i], kBufferBytes) << "worker " << i << " in turn " << turn;
      readers.push_back({i, (kBufferBytes - waiting[i]) / rate[i], last_turn[i]});
    }
    const size_t first = ReadingOrder(readers, turn).front().index;
    waiting[first] -= std::min(waiting[first], kReadBytes);
    last_turn[first] = turn;
    for (const uint64_t last : last_turn) longest_wait = std::max(longest_wait, turn - last);
  }
  EXPECT_LE(longest_wait, 2 * kWorkers);
}

}  // namespace
}  // namespace neurontrace
