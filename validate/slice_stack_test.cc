// SPDX-License-Identifier: Apache-2.0
// Goal: the slices of a track are let go of when Perfetto lets go of them, and so is their memory.
// Method: the stack alone.
#include "validate/slice_stack.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace neurontrace {
namespace {

constexpr size_t kDeep = 512;

SliceStack Deep() {
  SliceStack stack;
  for (size_t i = 0; i < kDeep; ++i) stack.Begin({.start_ns = i, .at = {i + 1, 0}});
  return stack;
}

TEST(SliceStackTest, GivesBackTheRoomOfSlicesThatEnd) {
  SliceStack stack = Deep();
  for (size_t i = kDeep; i-- > 0;) {
    ASSERT_TRUE(stack.End(0, 0, kDeep, {}));
    EXPECT_LE(stack.capacity(), std::max(size_t{16}, 4 * stack.size() + 4)) << i;
  }
  EXPECT_EQ(stack.size(), 0u);
  EXPECT_LE(stack.capacity(), 8u);
}

TEST(SliceStackTest, GivesBackTheRoomOfSlicesThatAreCutShortOrGivenUp) {
  SliceStack stack;
  stack.Begin({.name = 1});
  for (size_t i = 0; i < kDeep; ++i) stack.Begin({.name = 2});
  ASSERT_TRUE(stack.End(1, 0, 5, {}));
  const auto cut = stack.Settle(6);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->slices, kDeep);
  EXPECT_FALSE(stack.Settle(6));
  EXPECT_EQ(stack.size(), 0u);
  EXPECT_LE(stack.capacity(), kDeep);
  SliceStack given_up = Deep();
  given_up.Clear();
  EXPECT_EQ(given_up.capacity(), 0u);
  EXPECT_EQ(given_up.open(), 0u);
}

TEST(SliceStackTest, SlicesThatEndAtOneTimeMayEndInAnyOrder) {
  SliceStack stack;
  stack.Begin({.start_ns = 1, .name = 1});
  stack.Begin({.start_ns = 2, .name = 2});
  ASSERT_TRUE(stack.End(1, 0, 5, {}));
  EXPECT_EQ(stack.open(), 1u);
  EXPECT_EQ(stack.slices().back().name, 2u);
  EXPECT_FALSE(stack.Settle(5));
  ASSERT_TRUE(stack.End(2, 0, 5, {}));
  EXPECT_FALSE(stack.End(1, 0, 5, {})) << "it has ended";
  EXPECT_FALSE(stack.Settle(6));
  EXPECT_EQ(stack.size(), 0u);
}

TEST(SliceStackTest, TellsEachSliceThatCutsOthersShort) {
  SliceStack stack;
  for (uint64_t name = 1; name <= 4; ++name) stack.Begin({.start_ns = name, .name = name});
  ASSERT_TRUE(stack.End(3, 0, 10, {7, 70}));
  ASSERT_TRUE(stack.End(1, 0, 10, {8, 80}));
  auto cut = stack.Settle(11);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->slice.name, 3u);
  EXPECT_EQ(cut->slice.at.packet, 7u);
  EXPECT_EQ(cut->slices, 1u);
  cut = stack.Settle(11);
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->slice.name, 1u);
  EXPECT_EQ(cut->slices, 1u) << "the second; the third and what is in it are gone";
  EXPECT_FALSE(stack.Settle(11));
  EXPECT_EQ(stack.size(), 0u);
}

// A slice whose end is known stays until then, whatever ends below it.
TEST(SliceStackTest, CompleteSlices) {
  SliceStack stack;
  EXPECT_FALSE(stack.has_slice());
  stack.Begin({.start_ns = 1});
  EXPECT_TRUE(stack.AddComplete({.start_ns = 2, .end_ns = 10}));
  EXPECT_FALSE(stack.AddComplete({.start_ns = 3, .end_ns = 11}));
  EXPECT_EQ(stack.open(), 1u);
  EXPECT_TRUE(stack.End(0, 0, 4, {}).has_value());
  EXPECT_FALSE(stack.Settle(5).has_value());
  EXPECT_EQ(stack.size(), 1u);
  stack.Begin({.start_ns = 6});
  EXPECT_TRUE(stack.AddComplete({.start_ns = 6, .end_ns = 20}));
  const auto cut = stack.Settle(12);
  ASSERT_TRUE(cut.has_value());
  EXPECT_EQ(cut->slice.end_ns, 10u);
  EXPECT_EQ(cut->slices, 1u);
  EXPECT_EQ(stack.size(), 0u);
  EXPECT_EQ(stack.open(), 0u);
  stack.AddInstant();
  EXPECT_TRUE(stack.has_slice());
  EXPECT_FALSE(stack.Settle(13).has_value());
  EXPECT_FALSE(stack.has_slice());
}

}  // namespace
}  // namespace neurontrace
